"""An OpenAFS cell on one machine: each host is a network namespace and a mount namespace."""
