import { describe, expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'

// What no approval lifts stays refused where a program with an escape to a shell carries it.

const verdictOf = (text: string) => judgeCommand(text, { knownHosts: new Set(['db-osl-1']) }).verdict

describe('a program with an escape to a shell', () => {
  test.each([
    "vim -c '!rm -rf /' -c q",
    "psql -c '\\! rm -rf /'",
    'psql -c "copy x to program \'rm -rf /etc\'"',
    "sqlite3 x '.shell rm -rf /'",
    "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm -rf /' x",
    "tar xf x --to-command='rm -rf /'",
    "socat - EXEC:'rm -rf /'",
    "sed '1e rm -rf /' /etc/hosts",
    "gdb -batch -ex 'shell rm -rf /'",
    "git -c alias.x='!rm -rf /' x",
    "git -c core.pager='rm -rf /' log",
    "ssh -o ProxyCommand='rm -rf /' db-osl-1 uptime",
    "ncat -l 9 --sh-exec 'rm -rf /'",
    'ncat -l 9 --sh-exec reboot',
    "rsync -e 'sh -c reboot' a b:",
    "capsh -- -c 'rm -rf /'",
    'screen -dmS x rm -rf /',
    'start-stop-daemon -S -x /bin/rm -- -rf /',
    'run0 rm -rf /',
    'prlimit --nproc=5 rm -rf /',
    'setarch x86_64 -R rm -rf /',
    '/lib64/ld-linux-x86-64.so.2 /bin/rm -rf /',
    "echo '* * * * * rm -rf /' | crontab -",
    "make -f - <<< 'all: ; rm -rf /'",
    "PROMPT_COMMAND='rm -rf /' bash -i",
    "PAGER='rm -rf /' git log",
    "printf %s 'rm -rf /' | head -1 | bash",
    "echo 'rm -rf /' | tee /dev/null | bash",
    "dd status=none <<< 'rm -rf /' | sh",
    'IFS=,; c=rm,-rf,/; $c',
    `mapfile -t m <<< 'rm -rf /'; eval "\${m[0]}"`,
  ])('%s is refused', (text) => {
    expect(verdictOf(text)).toBe('refuse')
  })

  test.each([
    "grep 'rm -rf /' /var/log/syslog",
    "echo 'do not run rm -rf /'",
    'psql -c "select query from pg_stat_activity where query like \'%rm -rf /%\'"',
    "journalctl -u nginx --grep 'rm -rf /'",
    "sed -n '/rm -rf \\//p' /var/log/syslog",
  ])('%s only mentions it', (text) => {
    expect(verdictOf(text)).not.toBe('refuse')
  })
})
