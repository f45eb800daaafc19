"""usage: mail.py BOX [WHO]: delivers twenty mails into a Maildir with Python's library, or prints the subjects of all mails."""

import mailbox, sys

path, *who = sys.argv[1:]
box = mailbox.Maildir(path)
for n in range(20 if who else 0):
    box.add(f"From: {who[0]}\nSubject: {who[0]} {n}\n\ntext\n")
if not who:
    print(sorted(mail["Subject"] for mail in box))
