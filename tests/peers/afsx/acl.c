/* Access lists in the format of the file server: a count of entries, one of negative entries, and a line "WHO RIGHTS" for each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <afs/prs_fs.h>
#include "afsx.h"

enum { LIST_MAX = AFSOPAQUEMAX, WHO_MAX = 64 };

struct list {
    int count;
    size_t length;
    char lines[LIST_MAX];
};

static const struct { const char *name; int rights; } NAMED[] = {
    { "none", 0 },
    { "read", PRSFS_READ | PRSFS_LOOKUP },
    { "write", PRSFS_READ | PRSFS_WRITE | PRSFS_INSERT | PRSFS_LOOKUP | PRSFS_DELETE | PRSFS_LOCK },
    { "all", PRSFS_READ | PRSFS_WRITE | PRSFS_INSERT | PRSFS_LOOKUP | PRSFS_DELETE | PRSFS_LOCK | PRSFS_ADMINISTER },
};
static const struct { char letter; int right; } LETTERS[] = {
    { 'r', PRSFS_READ }, { 'w', PRSFS_WRITE }, { 'i', PRSFS_INSERT }, { 'l', PRSFS_LOOKUP },
    { 'd', PRSFS_DELETE }, { 'k', PRSFS_LOCK }, { 'a', PRSFS_ADMINISTER },
};

static int right(char letter)
{
    for (size_t i = 0; i < sizeof LETTERS / sizeof *LETTERS; i++)
        if (LETTERS[i].letter == letter)
            return LETTERS[i].right;
    fail("rights are letters of rlidwka, or read, write, all, none", EINVAL);
}

static int rights(const char *text)
{
    int found = 0;
    for (size_t i = 0; i < sizeof NAMED / sizeof *NAMED; i++)
        if (!strcmp(text, NAMED[i].name))
            return NAMED[i].rights;
    for (; *text; text++)
        found |= right(*text);
    return found;
}

static void add(struct list *list, const char *who, int rights)
{
    size_t room = sizeof list->lines - list->length;
    int length = snprintf(list->lines + list->length, room, "%s\t%d\n", who, rights);
    if (length < 0 || (size_t)length >= room)
        fail("access list", E2BIG);
    list->length += length;
    list->count++;
}

/* The list's text, which the caller must free. */
static char *fetch(struct afscp_venusfid *object)
{
    struct AFSOpaque list = { 0, NULL };
    struct AFSFetchStatus status;
    struct AFSVolSync sync;
    int code = RXAFS_FetchACL(connection(object), &object->fid, &list, &status, &sync);
    if (code)
        fail("FetchACL", code);
    return strndup(list.AFSOpaque_val, list.AFSOpaque_len);
}

static void store(struct afscp_venusfid *object, const struct list *kept)
{
    char text[LIST_MAX + 32];
    int length = snprintf(text, sizeof text, "%d\n0\n%s", kept->count, kept->lines);
    struct AFSOpaque list = { length + 1, text };
    struct AFSFetchStatus status;
    struct AFSVolSync sync;
    int code = RXAFS_StoreACL(connection(object), &object->fid, &list, &status, &sync);
    if (code)
        fail("StoreACL", code);
}

static int is_changed(char **words, const char *who)
{
    for (; words[0] && words[1]; words += 2)
        if (!strcmp(words[0], who))
            return 1;
    return 0;
}

void show_access_list(struct afscp_venusfid *object, char **words)
{
    (void)words;
    fputs(fetch(object), stdout);
}

/* Replaces the entries of the named users and groups, and keeps the others; negative entries are lost. */
void set_access(struct afscp_venusfid *object, char **words)
{
    struct list list = { 0, 0, "" };
    char *line = strtok(fetch(object), "\n"), who[WHO_MAX + 1];
    int positive = line ? atoi(line) : 0, has;
    strtok(NULL, "\n");
    while (positive-- > 0 && (line = strtok(NULL, "\n")))
        if (sscanf(line, "%64s %d", who, &has) == 2 && !is_changed(words, who))
            add(&list, who, has);
    for (; words[0] && words[1]; words += 2)
        if (rights(words[1]))
            add(&list, words[0], rights(words[1]));
    store(object, &list);
}
