/* Command line: afsx [-noauth | -krb5 REALM [-clear | -auth]] COMMAND PATH [WORD]... */
#include "afsx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rx/rxkad.h>
#include <afs/auth.h>
#include <afs/cellconfig.h>
#include <afs/com_err.h>
#include <afs/vlserver.h>

/* Number of rxkad's security class. */
enum { RXKAD = 2 };

struct command {
    const char *name;
    const char *words;
    int words_min;
    void (*run)(struct afscp_venusfid *, char **);
};

static const struct command COMMANDS[] = {
    { "stat", "", 0, show_status },
    { "get", "", 0, read_file },
    { "put", "(what it stores comes from standard input)", 0, write_file },
    { "create", "NAME", 1, create_file },
    { "rm", "NAME", 1, remove_file },
    { "mkm", "NAME VOLUME", 2, make_mount_point },
    { "la", "", 0, show_access_list },
    { "sa", "WHO RIGHTS [WHO RIGHTS]...", 2, set_access },
};

static const char *realm;
static int level = rxkad_crypt;

void fail(const char *what, long code)
{
    fprintf(stderr, "afsx: %s: %s (%ld)\n", what, afs_error_message(code), code);
    exit(1);
}

static void usage(void)
{
    fputs("usage: afsx [-noauth | -krb5 REALM [-clear | -auth]] COMMAND VOLUME[:/PATH] [WORD]...\n", stderr);
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        fprintf(stderr, "  %s %s\n", COMMANDS[i].name, COMMANDS[i].words);
    exit(2);
}

/* Parses the options; returns the words after them. */
static char **options(char **words)
{
    for (; *words && **words == '-'; words++) {
        if (!strcmp(*words, "-clear"))
            level = rxkad_clear;
        else if (!strcmp(*words, "-auth"))
            level = rxkad_auth;
        else if (!strcmp(*words, "-krb5") && words[1])
            realm = *++words;
        else if (strcmp(*words, "-noauth"))
            usage();
    }
    return words;
}

static const struct command *command(char **words)
{
    int count = 0;
    while (words[count])
        count++;
    for (size_t i = 0; count >= 2 && i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (!strcmp(words[0], COMMANDS[i].name) && count - 2 >= COMMANDS[i].words_min)
            return &COMMANDS[i];
    usage();
    return NULL;
}

static void name_errors(void)
{
    initialize_RXK_error_table();
    initialize_KTC_error_table();
    initialize_ACFG_error_table();
    initialize_VL_error_table();
}

/* The cell of the machine's configuration. The library itself accepts DES keys only: its security is replaced. */
static struct afscp_cell *configured_cell(void)
{
    int code;
    struct afscp_cell *cell;
    afscp_AnonymousAuth(1);
    if ((code = afscp_Init(NULL)))
        fail("configuration of the cell", code);
    if (!(cell = afscp_DefaultCell()))
        fail("cell", afscp_errno);
    if (realm) {
        cell->security = kerberos_security(cell->name, realm, level);
        cell->scindex = RXKAD;
    }
    return cell;
}

int main(int count, char **words)
{
    const struct command *asked;
    (void)count;
    words = options(words + 1);
    asked = command(words);
    name_errors();
    asked->run(object(configured_cell(), words[1]), words + 2);
    afscp_Finalize();
    return fflush(stdout) ? 1 : 0;
}
