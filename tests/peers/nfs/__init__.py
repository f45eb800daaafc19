"""An NFS server to compare with."""
