"""An emulated machine whose Linux has the kernel's own AFS client."""
