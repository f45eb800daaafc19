/* Paths VOLUME[:/path], and the servers of their volumes. */
#include <stdlib.h>
#include <string.h>
#include "afsx.h"

/* Type of volume, for the library. */
enum { READ_WRITE = 0 };

struct afscp_venusfid *object(struct afscp_cell *cell, const char *path)
{
    char *name = strdup(path), *below = strchr(name, ':');
    struct afscp_volume *volume;
    struct afscp_venusfid *found;
    if (below)
        *below++ = '\0';
    if (!(volume = afscp_VolumeByName(cell, name, READ_WRITE)))
        fail(name, afscp_errno);
    if (!(found = afscp_ResolvePathFromVol(volume, below && *below ? below : "/")))
        fail(path, afscp_errno);
    free(name);
    return found;
}

struct rx_connection *connection(const struct afscp_venusfid *object)
{
    struct afscp_volume *volume = afscp_VolumeById(object->cell, object->fid.Volume);
    if (!volume || volume->nservers < 1)
        fail("location of the volume", afscp_errno);
    return afscp_ServerByIndex(volume->servers[0])->conns[0];
}
