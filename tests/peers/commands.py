"""Programs, run to completion or in the background, and errors with a remedy."""

import os, shutil, signal, subprocess, sys, time

# Search path of programs, with the administrator's even if the caller's path lacks them.
FOLDERS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]


class Failure(Exception):
    """A failed operation and its cause, as one message for the user."""


def command_line(name, main, status=1):
    """Runs `main`; a Failure is written to standard error, and the exit status is then `status`."""
    # Temporary files are removed as at any other exit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    try:
        sys.exit(main())
    except (Failure, OSError) as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        sys.exit(status)


def need_root():
    if os.geteuid() != 0:
        raise Failure("only root can make network namespaces and bridges")


def need(packages):
    """Fails unless all programs are installed. `packages` names the Debian package of each."""
    missing = {program: package for program, package in packages.items() if not shutil.which(program)}
    if missing:
        programs, debs = ", ".join(missing), " ".join(sorted(set(missing.values())))
        raise Failure(f"not installed: {programs}; `make deps` as root does it (Debian: apt-get install {debs})")


def run(*words, **options):
    """Output of a program that must succeed."""
    done = attempt(*words, **options)
    if done.returncode != 0:
        cause = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise Failure(f"{' '.join(map(str, words))}: {cause}")
    return done.stdout


def attempt(*words, **options):
    """Exit status and output of a program. One that is killed after `timeout` seconds has status 124."""
    command = [str(word) for word in words]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **options)
    except subprocess.TimeoutExpired as expired:
        return subprocess.CompletedProcess(command, 124, "", f"no end after {expired.timeout:.0f} s")


def begin(words, log, **options):
    """A program in the background that outlives this one; its output is added to the file `log`."""
    with open(log, "ab") as output:
        given = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "start_new_session": True, **options}
        return subprocess.Popen([str(word) for word in words], **given)


def until(what, is_so, seconds=60):
    """Polls `is_so`: foreign programs send no notification."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not so after {seconds} s")
        time.sleep(0.1)
