//! Table of abort codes that are not errno values.

use super::AbortCode;
use std::sync::LazyLock;

/// Code, name, Linux error number (0: none), meaning.
pub(super) type Row = (i32, &'static str, i32, &'static str);

static SORTED: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut rows = TABLE.to_vec();
    rows.sort_unstable();
    rows
});

/// The table in order of the codes.
pub(super) fn sorted() -> &'static [Row] {
    &SORTED
}

macro_rules! codes {
    ($($name:ident = $code:literal, $errno:literal, $meaning:literal;)*) => {
        impl AbortCode { $(
            #[doc = concat!("Code ", stringify!($code), ": ", $meaning, ".")]
            pub const $name: Self = Self($code);
        )* }

        const TABLE: &[Row] = &[$(($code, stringify!($name), $errno, $meaning),)*];
    };
}

codes! {
    VSALVAGE = 101, 5, "the volume needs salvage";
    VNOVNODE = 102, 2, "the object does not exist";
    VNOVOL = 103, 19, "the volume is not on this server";
    VVOLEXISTS = 104, 17, "the volume exists already";
    VNOSERVICE = 105, 110, "the volume is not in service";
    VOFFLINE = 106, 6, "the volume is offline";
    VONLINE = 107, 17, "the volume is online already";
    VDISKFULL = 108, 28, "the partition is full";
    VOVERQUOTA = 109, 122, "the volume is over its quota";
    VBUSY = 110, 16, "the volume is busy for a while";
    VMOVED = 111, 6, "the volume moved to another server";
    VIO = 112, 5, "reading or writing the volume failed";
    VSALVAGING = 113, 5, "the volume is being salvaged";
    VRESTRICTED = 120, 13, "the volume is restricted";
    VICECONNBAD = 1234, 11, "the connection is bad";
    VICETOKENDEAD = 1235, 127, "the token has expired";
    VRESTARTING = -100, 16, "the server is starting or stopping";
    CPS_UNAVAILABLE = -1001, 11, "the server cannot learn the caller's groups";
    RX_CALL_DEAD = -1, 110, "the peer does not answer";
    RX_INVALID_OPERATION = -2, 22, "no such service or security class, or misuse of Rx";
    RX_CALL_TIMEOUT = -3, 110, "the call took too long";
    RX_EOF = -4, 5, "end of data";
    RX_PROTOCOL_ERROR = -5, 71, "the peer broke the Rx protocol";
    RX_USER_ABORT = -6, 103, "the caller gave up";
    RX_ADDRINUSE = -7, 16, "the address is in use";
    RX_MSGSIZE = -8, 90, "a packet was too large";
    RX_CALL_IDLE = -9, 110, "the call made no progress";
    RX_CALL_BUSY = -10, 16, "the call channel is busy";
    RXGEN_CC_MARSHAL = -450, 121, "the client could not encode the arguments";
    RXGEN_CC_UNMARSHAL = -451, 121, "the client could not decode the reply";
    RXGEN_SS_MARSHAL = -452, 121, "the server could not encode the reply";
    RXGEN_SS_UNMARSHAL = -453, 121, "the server could not decode the arguments";
    RXGEN_DECODE = -454, 121, "encoding or decoding failed";
    RXGEN_OPCODE = -455, 95, "the server does not know this call";
    RXGEN_SS_XDRFREE = -456, 121, "the server could not free the arguments";
    RXGEN_CC_XDRFREE = -457, 121, "the client could not free the reply";
    BZNOTACTIVE = 39_424, 3, "the process does not run";
    BZNOENT = 39_425, 2, "the overseer knows nothing of that name";
    BZBUSY = 39_426, 16, "the overseer cannot do this now";
    BZEXISTS = 39_427, 17, "the overseer has something of that name";
    BZNOCREATE = 39_428, 5, "the overseer could not make it";
    BZDOM = 39_429, 33, "beyond the last";
    BZACCESS = 39_430, 13, "the overseer does not permit this";
    BZSYNTAX = 39_431, 22, "not a valid argument for the overseer";
    BZIO = 39_432, 5, "the overseer could not read or write";
    BZNET = 39_433, 101, "the overseer has trouble with the network";
    BZBADTYPE = 39_434, 22, "not a valid kind of instance";
    BZKEYINUSE = 39_435, 17, "the number of the key is in use";
    BZENCREQ = 39_436, 1, "the overseer wants this encrypted";
    PREXIST = 267_264, 17, "the name is in use";
    PRIDEXIST = 267_265, 17, "the entry for the id exists already";
    PRNOIDS = 267_266, 28, "no id is left";
    PRDBFAIL = 267_267, 5, "the protection database cannot be read or written";
    PRNOENT = 267_268, 2, "no such user, group or membership";
    PRPERM = 267_269, 13, "the protection service does not permit this";
    PRNOTGROUP = 267_270, 22, "not a group";
    PRNOTUSER = 267_271, 22, "not a user";
    PRBADNAM = 267_272, 22, "not a valid name for a user or group";
    PRBADARG = 267_273, 22, "not a valid argument for the protection service";
    PRNOMORE = 267_274, 122, "the quota of groups or users is used up";
    PRDBBAD = 267_275, 5, "the protection database is damaged";
    PRGROUPEMPTY = 267_276, 22, "the owning group has no members";
    PRINCONSISTENT = 267_277, 5, "the protection database contradicts itself";
    PRDBADDR = 267_278, 5, "a place in the protection database is wrong";
    PRTOOMANY = 267_279, 7, "too many members, groups or elements";
    PRNOMEM = 267_280, 12, "the protection server has no memory left";
    PRINTERNAL = 267_281, 5, "internal error of the protection server";
    PRNAMETOOLONG = 267_282, 36, "the name is too long";
    VL_IDEXIST = 363_520, 17, "the volume number is in use";
    VL_IO = 363_521, 5, "the location database cannot be read or written";
    VL_NAMEEXIST = 363_522, 17, "the volume name is in use";
    VL_CREATEFAIL = 363_523, 5, "the entry could not be made";
    VL_NOENT = 363_524, 19, "no such volume in the location database";
    VL_EMPTY = 363_525, 19, "the location database is empty";
    VL_ENTDELETED = 363_526, 19, "the volume's entry was deleted";
    VL_BADNAME = 363_527, 22, "not a valid volume name";
    VL_BADINDEX = 363_528, 22, "not a valid index";
    VL_BADVOLTYPE = 363_529, 22, "not a valid volume type";
    VL_BADSERVER = 363_530, 22, "not a valid server, or too many of them";
    VL_BADPARTITION = 363_531, 22, "not a valid partition";
    VL_REPSFULL = 363_532, 28, "no room for another site";
    VL_NOREPSERVER = 363_533, 2, "no such site";
    VL_DUPREPSERVER = 363_534, 17, "the site exists already";
    VL_RWNOTFOUND = 363_535, 2, "no read-write site";
    VL_BADREFCOUNT = 363_536, 22, "not a valid reference count";
    VL_SIZEEXCEEDED = 363_537, 28, "too much for one answer";
    VL_BADENTRY = 363_538, 22, "not a valid entry";
    VL_BADVOLIDBUMP = 363_539, 22, "not a valid number of volume numbers";
    VL_IDALREADYHASHED = 363_540, 17, "the volume number is indexed already";
    VL_ENTRYLOCKED = 363_541, 16, "the volume's entry is locked";
    VL_BADVOLOPER = 363_542, 22, "not a valid lock operation";
    VL_BADRELLOCKTYPE = 363_543, 22, "not a valid way to release a lock";
    VL_RERELEASE = 363_544, 16, "the last release of the volume did not finish";
    VL_BADSERVERFLAG = 363_545, 22, "not a valid site flag";
    VL_PERM = 363_546, 13, "only administrators may do this";
    VL_NOMEM = 363_547, 12, "the location server has no memory left";
    VL_BADVERSION = 363_548, 22, "not a valid database version";
    VL_INDEXERANGE = 363_549, 22, "the index is out of range";
    VL_MULTIPADDR = 363_550, 17, "the address belongs to more than one server";
    VL_BADMASK = 363_551, 22, "not a valid mask";
    VL_DBBAD = 363_552, 5, "the location database is damaged";
    VOLSERTRELE_ERROR = 1_492_325_120, 5, "the transaction could not be released";
    VOLSERNO_OP = 1_492_325_121, 95, "not supported";
    VOLSERREAD_DUMPERROR = 1_492_325_122, 5, "the dump cannot be read";
    VOLSERDUMPERROR = 1_492_325_123, 5, "the dump failed";
    VOLSERATTACH_ERROR = 1_492_325_124, 5, "the volume cannot be attached";
    VOLSERILLEGAL_PARTITION = 1_492_325_125, 19, "no such partition";
    VOLSERDETACH_ERROR = 1_492_325_126, 5, "the volume cannot be detached";
    VOLSERBAD_ACCESS = 1_492_325_127, 13, "only administrators may do this";
    VOLSERVLDB_ERROR = 1_492_325_128, 5, "the location database failed";
    VOLSERBADNAME = 1_492_325_129, 22, "not a valid volume name";
    VOLSERVOLMOVED = 1_492_325_130, 6, "the volume moved";
    VOLSERBADOP = 1_492_325_131, 22, "not a valid operation";
    VOLSERBADRELEASE = 1_492_325_132, 5, "the release did not reach every site";
    VOLSERVOLBUSY = 1_492_325_133, 16, "another transaction holds the volume";
    VOLSERNO_MEMORY = 1_492_325_134, 12, "the volume server has no memory left";
    VOLSERNOVOL = 1_492_325_135, 19, "no such volume";
    VOLSERMULTIRWVOL = 1_492_325_136, 17, "there is more than one read-write volume";
    VOLSERFAILEDOP = 1_492_325_137, 5, "the operation failed";
    LGNVERSION = 12_701_184, 71, "the login service does not speak this version";
    LGNDENIED = 12_701_185, 13, "the user does not exist, or the passphrase or key is wrong";
    LGNSLOW = 12_701_186, 11, "too many failed logins; wait a while";
    LGNOVER = 12_701_187, 11, "the login took too long, or the server has started again since; begin again";
    LGNPERM = 12_701_188, 1, "only the user and administrators may do this";
    LGNPROTECTION = 12_701_189, 1, "this needs a connection that nobody can read (rxgk, level crypt)";
    LGNNOUSER = 12_701_190, 2, "the protection database has no such user";
    LGNBADKEY = 12_701_191, 22, "not an SSH key that can be used: take an Ed25519 key, or ECDSA over nistp256";
    LGNFULL = 12_701_192, 28, "the user has as many SSH keys as one may have";
    LGNNOTRENEWABLE = 12_701_193, 127, "the token can no longer be renewed; log in again";
    LGNIO = 12_701_194, 5, "the login records cannot be read or written, or the cell has no key to make tokens with";
    LGNNOGROUP = 12_701_195, 2, "there is no such group, or membership in it cannot be suspended";
    LGNFIXED = 12_701_196, 1, "the login was made without this group; log in again to resume membership in it";
    UNOQUORUM = 5376, 11, "no quorum: the database server reaches no majority of the cell's, and takes no changes until it does";
    UNOTSYNC = 5377, 11, "this database server does not take changes";
    UNHOSTS = 5378, 22, "too many database servers";
    UIOERROR = 5379, 5, "the database cannot be read or written";
    UINTERNAL = 5380, 5, "internal error of the database";
    USYNC = 5381, 11, "the database changed underneath";
    UNOENT = 5382, 2, "no such record";
    UBADLOCK = 5383, 37, "a database lock is bad";
    UBADLOG = 5384, 5, "the database log is bad";
    UBADHOST = 5385, 22, "not a valid database server";
    UBADTYPE = 5386, 22, "not a valid operation on a database";
    UTWOENDS = 5387, 22, "two ends of one transaction";
    UDONE = 5388, 22, "the transaction is over";
    UNOSERVERS = 5389, 113, "no database server answers";
    RXKADINCONSISTENCY = 19_270_400, 129, "security state is inconsistent";
    RXKADPACKETSHORT = 19_270_401, 129, "a security packet is too short";
    RXKADLEVELFAIL = 19_270_402, 129, "the security level is too low";
    RXKADTICKETLEN = 19_270_403, 129, "the ticket has a wrong length";
    RXKADOUTOFSEQUENCE = 19_270_404, 129, "a security packet is out of sequence";
    RXKADNOAUTH = 19_270_405, 129, "the caller is not authenticated";
    RXKADBADKEY = 19_270_406, 129, "the key is bad";
    RXKADBADTICKET = 19_270_407, 129, "the ticket is bad";
    RXKADUNKNOWNKEY = 19_270_408, 129, "the server does not have the ticket's key";
    RXKADEXPIRED = 19_270_409, 127, "the ticket has expired";
    RXKADSEALEDINCON = 19_270_410, 129, "sealed data does not check";
    RXKADDATALEN = 19_270_411, 129, "sealed data has a wrong length";
    RXKADILLEGALLEVEL = 19_270_412, 129, "no such security level";
    AFSCONF_NOTFOUND = 70_354_689, 129, "the server does not have the token's key";
    RXGKINCONSISTENCY = 1_233_242_880, 129, "security state is inconsistent";
    RXGKPACKETSHORT = 1_233_242_881, 129, "a security packet is too short";
    RXGKBADCHALLENGE = 1_233_242_882, 129, "the response does not answer the challenge";
    RXGKBADETYPE = 1_233_242_883, 129, "the encryption type is not known";
    RXGKBADLEVEL = 1_233_242_884, 129, "the security level is too low, or not known";
    RXGKBADKEYNO = 1_233_242_885, 129, "the key number is neither in use nor next";
    RXGKEXPIRED = 1_233_242_886, 127, "the token has expired";
    RXGKNOTAUTH = 1_233_242_887, 129, "the token is nobody's who could be given rights";
    RXGKBADTOKEN = 1_233_242_888, 129, "there is no token";
    RXGKSEALEDINCON = 1_233_242_889, 129, "sealed data does not open: the two ends do not have the same key";
    RXGKDATALEN = 1_233_242_890, 129, "sealed data has a wrong length";
    RXGKBADQOP = 1_233_242_891, 129, "no such protection of a message";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_listed_twice() {
        assert!(sorted().windows(2).all(|rows| rows[0].0 < rows[1].0));
    }
}
