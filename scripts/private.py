"""A private volume of a cell of ours, and its only user, who has logged in: the place of a measurement that nobody else may see."""

from processes import run

USER, VOLUME = "worker", "private"


def of(program, state, cell, mount, folder, server="127.0.0.1", env=None):
    """Makes the volume and mounts it in the top directory of a mount; the user's token goes to all mounts of this user and cell. Returns its
    directory. `program` are the words of a command, `cell` the options by which a client finds the cell, `folder` is for the passphrase."""
    do = lambda *words: run([*program, *words], env=env)
    at, here, secret = ["--state", state], mount / VOLUME, folder / "secret"
    secret.write_text("nobody guesses this one\n")
    secret.chmod(0o600)
    login = lambda user: do("login", user, "--passphrase-file", secret, *cell)
    do("pts", "createuser", USER, *at)
    for user in ["admin", USER]:
        do("passwd", user, "--passphrase-file", secret, *at)
    login("admin")
    do("vos", "create", server, "a", VOLUME, *at)
    do("vos", "setfields", VOLUME, "-maxquota", 0, *at)
    do("fs", "mkmount", here, VOLUME)
    do("fs", "setacl", here, USER, "all")
    do("fs", "setacl", here, "system:anyuser", "none")
    login(USER)
    return here
