/* A client of OpenAFS's file server, on its own libraries, for functions whose tools need a kernel module. */
#ifndef AFSX_H
#define AFSX_H

#include <afs/param.h>
#include <afs/stds.h>
#include <errno.h>
#include <rx/rx.h>
#include <afs/afscp.h>

/* Prints the failed operation with the error code and its meaning, and exits with status 1. */
void fail(const char *what, long code) __attribute__((noreturn));

/* Security of calls, from the tickets of a Kerberos cache ($KRB5CCNAME), at an rxkad level. */
struct rx_securityClass *kerberos_security(const char *cell, const char *realm, int level);

/* The object of a path: VOLUME[:/path], in the read-write volume. */
struct afscp_venusfid *object(struct afscp_cell *cell, const char *path);

/* A connection to the file server of an object. */
struct rx_connection *connection(const struct afscp_venusfid *object);

/* Commands. Each takes the object of its path, and the following words up to a null pointer. */
void show_status(struct afscp_venusfid *object, char **words);
void read_file(struct afscp_venusfid *object, char **words);
void write_file(struct afscp_venusfid *object, char **words);
void create_file(struct afscp_venusfid *object, char **words);
void remove_file(struct afscp_venusfid *object, char **words);
void make_mount_point(struct afscp_venusfid *object, char **words);
void show_access_list(struct afscp_venusfid *object, char **words);
void set_access(struct afscp_venusfid *object, char **words);

#endif
