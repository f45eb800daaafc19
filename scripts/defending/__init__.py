"""Parts of scripts/without-defence."""
