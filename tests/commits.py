"""Check the commits since the last release: `make commits`.

A subject has at most 72 characters and does not end with a period; a body says why. Merges have no rules.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 72
SINCE = "2026-11-25T00:00:00Z"  # the day after release 0.2.0; older commits have other habits
FIELDS = "%h%x00%s%x00%b%x01"


def faults(commit: str, subject: str, body: str) -> list[str]:
    """Return what is wrong with a commit."""
    found = []
    if len(subject) > LONGEST:
        found.append(f"{commit}: the subject has {len(subject)} characters, more than {LONGEST}: {subject}")
    if subject.endswith("."):
        found.append(f"{commit}: the subject ends with a period: {subject}")
    if not body.strip():
        found.append(f"{commit}: there is no body that says why: {subject}")
    return found


def main() -> int:
    """Print the faults of all commits since the release; returns 1 if there are any."""
    if not (ROOT / ".git").exists():
        print("commits: this is no repository, so there is nothing to check")
        return 0
    command = ["git", "log", "--no-merges", f"--since={SINCE}", f"--format={FIELDS}"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commits = [each.strip("\n").split("\0") for each in log.split("\1") if each.strip()]
    found = [fault for commit, subject, body in commits for fault in faults(commit, subject, body)]
    print(*found, f"commits: {len(commits)} since {SINCE}, {len(found)} faults", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
