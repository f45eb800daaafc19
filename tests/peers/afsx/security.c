/* Token for rxkad of a Kerberos service ticket: the DES key that AFS-3 derives from the ticket's session key. */
#include "afsx.h"
#include <string.h>
#include <krb5.h>
#include <rx/rxkad.h>
#include <afs/auth.h>

/* Ticket for the cell's service, of the user of the ticket cache. */
static krb5_creds *service_ticket(const char *cell, const char *realm)
{
    krb5_context context;
    krb5_ccache cache;
    krb5_creds wanted, *ticket;
    krb5_error_code code;
    memset(&wanted, 0, sizeof wanted);
    if ((code = krb5_init_context(&context)) || (code = krb5_cc_default(context, &cache)))
        fail("Kerberos", code);
    if ((code = krb5_cc_get_principal(context, cache, &wanted.client)))
        fail("tickets of a user", code);
    code = krb5_build_principal(context, &wanted.server, strlen(realm), realm, "afs", cell, (char *)NULL);
    if (code || (code = krb5_get_credentials(context, 0, cache, &wanted, &ticket)))
        fail("ticket of the cell's service", code);
    return ticket;
}

struct rx_securityClass *kerberos_security(const char *cell, const char *realm, int level)
{
    krb5_creds *ticket = service_ticket(cell, realm);
    krb5_keyblock *session = &ticket->keyblock;
    struct ktc_encryptionKey key;
    int code = tkt_DeriveDesKey(session->enctype, session->contents, session->length, &key);
    if (code)
        fail("key of the token", code);
    return rxkad_NewClientSecurityObject(level, &key, RXKAD_TKT_TYPE_KERBEROS_V5,
                                         ticket->ticket.length, ticket->ticket.data);
}
