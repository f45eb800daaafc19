/* Files, their status, and mount points. Data is transferred a MiB a call. */
#include <stdio.h>
#include <string.h>
#include "afsx.h"

static char buffer[1 << 20];

void show_status(struct afscp_venusfid *object, char **words)
{
    struct AFSFetchStatus status;
    unsigned long long length;
    (void)words;
    if (afscp_GetStatus(object, &status))
        fail("FetchStatus", afscp_errno);
    length = (unsigned long long)status.Length_hi << 32 | status.Length;
    printf("fid %u.%u.%u type %u links %u length %llu version %u mode %o owner %u group %u author %u "
           "rights %x/%x parent %u.%u modified %u\n",
           object->fid.Volume, object->fid.Vnode, object->fid.Unique, status.FileType, status.LinkCount, length,
           status.DataVersion, status.UnixModeBits, status.Owner, status.Group, status.Author, status.CallerAccess,
           status.AnonymousAccess, status.ParentVnode, status.ParentUnique, status.ClientModTime);
}

void read_file(struct afscp_venusfid *object, char **words)
{
    ssize_t count;
    off_t at = 0;
    (void)words;
    while ((count = afscp_PRead(object, buffer, sizeof buffer, at)) > 0) {
        at += count;
        if (fwrite(buffer, 1, count, stdout) != (size_t)count)
            fail("standard output", errno);
    }
    if (count < 0)
        fail("FetchData64", afscp_errno);
}

void write_file(struct afscp_venusfid *object, char **words)
{
    size_t count;
    off_t at = 0;
    (void)words;
    while ((count = fread(buffer, 1, sizeof buffer, stdin)) > 0) {
        if (afscp_PWrite(object, buffer, count, at) != (ssize_t)count)
            fail("StoreData64", afscp_errno);
        at += count;
    }
    if (ferror(stdin))
        fail("standard input", errno);
}

static struct AFSStoreStatus with_mode(unsigned mode)
{
    struct AFSStoreStatus status;
    memset(&status, 0, sizeof status);
    status.Mask = AFS_SETMODE;
    status.UnixModeBits = mode;
    return status;
}

void create_file(struct afscp_venusfid *object, char **words)
{
    struct AFSStoreStatus status = with_mode(0644);
    struct afscp_venusfid *made;
    if (afscp_CreateFile(object, words[0], &status, &made))
        fail("CreateFile", afscp_errno);
}

void remove_file(struct afscp_venusfid *object, char **words)
{
    if (afscp_RemoveFile(object, words[0]))
        fail("RemoveFile", afscp_errno);
}

/* A mount point is a symbolic link to "#VOLUME.", with the mode by which servers recognize it. */
void make_mount_point(struct afscp_venusfid *object, char **words)
{
    struct AFSStoreStatus status = with_mode(0644);
    char target[256];
    if (snprintf(target, sizeof target, "#%s.", words[1]) >= (int)sizeof target)
        fail("name of the volume", ENAMETOOLONG);
    if (afscp_Symlink(object, words[0], target, &status))
        fail("Symlink", afscp_errno);
}
