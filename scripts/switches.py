"""What the threads of a process wait for, by its switches: where in the kernel each waits, and who wakes it."""

import collections, re, sys

import processes

# The first of these functions in the kernel's stack tells what a thread waits for.
WAITS = {
    "fuse_dev_do_read": "the kernel's next request",
    "jbd2_log_wait_commit": "a flush: the commit of the file system's journal",
    "folio_wait_writeback": "a flush: data on their way to the disk",
    "__sync_dirty_buffer": "a flush: the file system's records of the file",
    "blkdev_issue_flush": "a flush: the disk's own cache",
    "_fsync": "a flush: other",
    "futex_wait": "another thread (futex)",
    "do_epoll_wait": "timers and descriptors of the pool",
    "do_sys_poll": "datagrams and timers",
    "__skb_wait_for_more_packets": "datagrams",
    "hrtimer_nanosleep": "time",
}
THREADS = {
    "fuser": "reader of the kernel's requests",
    "fuse-read": "reader of the kernel's requests",
    "afs-disk": "blocking work",
    "afs-pool": "workers",
}
OUTSIDE, TAKEN = "the kernel or another process", "nothing: the processor was taken away"


def record(pid, file, command):
    """Runs a command and keeps the switches of a process meanwhile. Answers what the command says."""
    events = ["-e", "sched:sched_switch", "-e", "sched:sched_waking"]
    words = ["perf", "record", "-q", "-o", file, "-m", "8M", "-g", "--kernel-callchains", *events, "-p", pid, "--"]
    return processes.run([*words, *command])


def by_wait(file, base_port):
    """How often: (thread, what it waited for, who woke it) -> count."""
    text = processes.run(["perf", "script", "-i", file, "-F", "comm,tid,time,event,trace,ip,sym", "--show-lost-events"])
    waiting, counts = {}, collections.Counter()
    for event in text.split("\n\n"):
        head, *stack = event.strip("\n").split("\n")
        if "LOST" in head:
            sys.exit(f"perf lost events: {head.strip()}")
        found = re.match(r"\s*(.+?)\s+(\d+)\s+[\d.]+:\s+sched:(\w+):\s+(.*)", head)
        if not found:
            continue
        comm, tid, kind, told = found.groups()
        functions = [line.split()[1] for line in stack if len(line.split()) > 1]
        if kind == "sched_waking":
            woken = re.search(r"\bpid=(\d+)", told)[1]
            if woken in waiting:
                counts[*waiting.pop(woken), waker(comm, functions, base_port)] += 1
        else:
            if tid in waiting:  # It has run since, and nobody of the process woke it.
                counts[*waiting.pop(tid), OUTSIDE] += 1
            if re.search(r"prev_state=R", told):
                counts[role(comm, base_port), TAKEN, ""] += 1
            else:
                waiting[tid] = role(comm, base_port), reason(functions)
    counts.update((*wait, OUTSIDE) for wait in waiting.values())
    return counts


def reason(functions):
    known = [words for function, words in WAITS.items() if any(function in one for one in functions)]
    calls = [re.sub(r".*_sys_", "", one) for one in functions if re.match(r"__\w+_sys_", one)]
    return known[0] if known else f"the system call {calls[0]}" if calls else "unknown"


def waker(comm, functions, base_port):
    """An interrupt comes in whatever thread runs."""
    by_interrupt = any(re.search(r"sysvec_|common_interrupt", one) for one in functions)
    return OUTSIDE if by_interrupt else role(comm, base_port)


def role(comm, base_port):
    port = re.match(r"afs-rx-(\d+)", comm)
    if port:
        number = int(port[1]) - base_port
        return "receiving, file server" if number == 0 else "receiving, other servers" if 0 < number < 10 else "receiving, client"
    name = re.sub(r"-\d+$", "", comm)
    return THREADS.get(name, name)
