"""Copies of a tree to a place and back, by programs that keep all they can: what they print, and what is there afterwards."""

from .results import of_command

SECONDS = 600
# The tree as a program sees it: kinds, modes, links, times and contents. Of a directory the number of links is the file system's own.
SHOWN = r"""
shown() {
    (cd "$1" && find . -mindepth 1 -type d -printf '%P %y %m %T@\n' -o -printf '%P %y %m %n %T@ %s %l\n' | sort
     find . -type f -exec sha256sum {} + | sort -k 2)
}
"""
MADE = """
mkdir -p tree/a/b "tree/ä und ß"
seq 100000 > tree/large
: > tree/empty
truncate -s 3M tree/sparse
echo 1 > tree/a/one; ln tree/a/one tree/a/same; echo 2 > tree/a/b/two; echo x > "tree/ä und ß/name with space"
ln -s a/one tree/link; ln -s nowhere tree/a/dangling; printf '#!/bin/sh\\necho ran\\n' > tree/a/program
for n in $(seq 60); do echo $n > tree/a/b/$n; done
chmod 755 tree/a/program; chmod 600 tree/a/b/two; chmod 444 tree/a/b/7; chmod 700 tree/a/b
find tree -depth -exec touch -h -d '2024-02-03 04:05:06 UTC' {} +
"""
STEPS = {
    "made": MADE + "shown tree",
    "rsync in": 'rsync -aHAX "$LOCAL/tree/" rsynced; shown rsynced; rsync -aHAXni "$LOCAL/tree/" rsynced',
    "rsync out": 'rsync -aHAX rsynced/ "$LOCAL/rsynced"; shown "$LOCAL/rsynced"; rsync -aHAXni rsynced/ "$LOCAL/tree"',
    "rsync within": "rsync -aHAX --delete rsynced/ again; echo more >> again/a/one; rm again/link; rsync -aHAX --delete rsynced/ again; shown again",
    "rsync in place": "rsync -aHAX --inplace --no-whole-file --checksum rsynced/ again; shown again",
    "rsync links across directories": 'mkdir "$LOCAL/across" "$LOCAL/across/"{1,2}; echo x > "$LOCAL/across/1/f"; ln "$LOCAL/across/1/f" "$LOCAL/across/2/f"; rsync -aH "$LOCAL/across/" across',
    "tar in": 'mkdir tarred; tar --xattrs -C "$LOCAL/tree" -cf - . | tar --xattrs -C tarred -xpf -; shown tarred',
    "tar out": 'mkdir "$LOCAL/tarred"; tar --xattrs -C tarred -cf - . | tar --xattrs -C "$LOCAL/tarred" -xpf -; shown "$LOCAL/tarred"',
    "tar with times": "tar --sort=name --numeric-owner --owner=0 --group=0 --format=pax --pax-option=delete=atime,delete=ctime -cf - tarred | sha256sum",
    "cp in": 'cp -a "$LOCAL/tree" copied; shown copied; diff -r --no-dereference "$LOCAL/tree" copied',
    "cp out": 'cp -a copied "$LOCAL/copied"; shown "$LOCAL/copied"',
    "cp within": "cp -a --reflink=auto copied second; shown second; cp -a --sparse=always copied/sparse third; stat -c '%s %b' third",
    "mv in": 'cp -a "$LOCAL/tree" "$LOCAL/moving"; mv "$LOCAL/moving" moved; shown moved',
    "mv out": 'mv moved "$LOCAL/back"; shown "$LOCAL/back"; test ! -e moved',
    "set-user-id bit": 'echo x > set; chmod 4755 set; stat -c %A set; cp -a set set-copy; stat -c %A set-copy',
    "set-group-id bit of a directory": "mkdir grouped; chmod 2755 grouped; stat -c %A grouped",
    "mode of a symbolic link": "ln -s x mode-of-a-link; stat -c %A mode-of-a-link",
    "extended attributes": 'echo x > attributed; setfattr -n user.colour -v blue attributed; getfattr -d attributed; cp -a attributed "$LOCAL/attributed"; getfattr --only-values -n user.colour "$LOCAL/attributed"',
    "access control list": "echo x > listed; setfacl -m u:61002:r listed; getfacl -n listed",
    "a user's name on files": "ls -ld tree/large | awk '{print $3}'",
}


def run(place, _gate):
    folder, found = place.folder("copies"), {}
    # What the others copy in is on the disk.
    place.run(["bash", "-euc", SHOWN + MADE], SECONDS, place.local)
    for name, script in STEPS.items():
        said = place.run(["bash", "-euo", "pipefail", "-c", SHOWN + script], SECONDS, folder, LOCAL=place.local)
        found[name] = of_command(said)
    return found
