"""Programs of others that are built from their source, which is fetched once."""

from .place import run


def built(tree, product, archive, script):
    """Fetches the archive to the tree, if it is empty, and runs the script there, if it has not made its product yet."""
    if (tree / product).exists():
        return
    tree.mkdir(parents=True, exist_ok=True)
    if not any(tree.iterdir()):
        run("bash", "-euc", f"trap 'rm -f archive' EXIT; curl -sSfLo archive {archive}; tar -xf archive --strip-components=1", cwd=tree)
    run("bash", "-euc", script, cwd=tree)
