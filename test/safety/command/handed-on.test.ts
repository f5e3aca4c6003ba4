import { beforeAll, describe, expect, test } from '@jest/globals'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

/**
 * What a program prints becomes words of another one: by a substitution, a loop or xargs. Each row
 * was tried in a shell.
 */

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web']) }
const verdictOf = (text: string) => judgeCommand(text, context).verdict

beforeAll(loadSql)

describe('a date becomes the word that it prints', () => {
  test.each([
    'cat /var/log/app-$(date +%F).log',
    'cat "/var/log/app-$(date +%Y.%m.%d).log"',
    'grep "$(date +\'%b %d\')" /var/log/syslog',
    "journalctl --since \"$(date -d '1 hour ago' '+%Y-%m-%d %H:%M:%S')\" --no-pager -n 50",
  ])('%s runs without approval', (text) => expect(verdictOf(text)).toBe('run'))

  test.each([
    'cat $(date +/etc/shadow)',
    'cat /etc/shad$(date +ow)',
    'cat /home/$(date +app/.env)',
    'cat /srv/$(date +..)/etc/shadow',
    'cat /etc/$(date -d bad +%F)shadow',
    'cat /srv/$(date +%D)/app.log',
    'find /srv $(date +-delete)',
    'find /srv $(date +-%Y)',
    'sort $(date +-o/srv/out) f',
    'journalctl -u x $(date +--rotate)',
    'date $(date +010100002030)',
    'cat $(date -f /etc/shadow +%F)',
    'cat $(date -r /srv/x +%F) $(date -s 2030-01-01 +%F)',
    'TZ=ow0 cat /etc/shad$(date +%Z)',
    "ssh db1 'cat /etc/shad$(date +ow)'",
    "sh -c 'find /srv $(date +-delete)'",
  ])('%s does not', (text) => expect(verdictOf(text)).not.toBe('run'))
})

describe('numbers and names are known under listed options alone', () => {
  test.each([
    'cat /proc/$(pgrep -o nginx)/status',
    'ps -p $(pgrep nginx) -o pid,rss',
    'ps -o pid,rss -p $(pgrep -d, nginx)',
    'pgrep nginx | xargs -I{} cat /proc/{}/limits',
    'for p in $(pgrep nginx); do cat /proc/$p/limits; done',
    'for p in $(pidof nginx); do ls -l /proc/$p/fd; done',
    "docker ps -q | xargs docker inspect --format '{{.State.Status}}'",
    "docker ps -aqf status=exited | xargs -r docker inspect --format '{{.State.ExitCode}}'",
    'lsof -p $(pgrep -o java)',
  ])('%s runs without approval', (text) => expect(verdictOf(text)).toBe('run'))

  test.each([
    "pgrep -d ' -delete -o -name ' . | xargs find /srv",
    "pgrep -d ' /etc/shadow ' nginx | xargs cat",
    "cat /proc/$(pgrep -d ' /etc/shadow /proc/' nginx)/status",
    'cat $(pgrep -a nginx)',
    'cat $(pgrep --list-full nginx)',
    'for x in -a; do cat /proc/$(pgrep $x nginx)/status; done',
    "cat $(pidof -S ' /etc/shadow ' nginx)",
    "docker ps -q --format 'x /etc/shadow' | xargs cat",
    "cat $(docker ps -q --format '/etc/shadow')",
    'docker -H tcp://10.9.9.9:2375 ps -q | xargs docker inspect --format {{.Id}}',
    'cat /etc/$(pgrep nosuch)shadow',
    'cd /proc; cat 1$(pgrep nginx)/../../etc/shadow',
    'lsof -F n -t /srv | xargs cat',
    'uname -a | xargs cat',
    "find /var/log -printf '/etc/shadow\\0' -print0 | xargs -0 cat",
  ])('%s does not', (text) => expect(verdictOf(text)).not.toBe('run'))
})

describe('a loop runs over words that are literally known', () => {
  test.each([
    'for i in 1 2 3; do cat /proc/loadavg; done',
    'for i in {1..3}; do cat /proc/loadavg; done',
    'for f in /var/log/{syslog,messages}; do tail -n 5 $f; done',
    'for i in $(seq 1 3); do uptime; done',
    'for f in $(echo syslog messages); do tail -n 5 /var/log/$f; done',
  ])('%s runs without approval', (text) => expect(verdictOf(text)).toBe('run'))

  test.each([
    'for f in $(echo /etc/xshadow | tr -d x); do cat $f; done',
    'for f in $(echo /srv/../etc/shad0w | sed s/0/o/); do cat $f; done',
    'for f in $(echo /etc/hosts/etc/shadow | tail -c 12); do cat $f; done',
    'for f in $(printf %.11s /etc/shadowx); do cat $f; done',
    'for f in $(echo \'/etc/shado?\'); do cat "$f"; done',
    'for f in $(echo x | tee /srv/y); do cat $f; done',
    'for f in $(echo x; touch /srv/y); do cat $f; done',
    'for f in $(seq -f /etc/shadow 1 1); do cat $f; done',
    "for f in $(seq -s ' /etc/shadow ' 1 2); do cat $f; done",
  ])('%s does not', (text) => expect(verdictOf(text)).not.toBe('run'))
})

describe('xargs is judged by every command that it would make', () => {
  test.each([
    "echo 'a.gz b.gz' | xargs gzip -l",
    "echo 'a.gz b.gz' | xargs -n 1 gzip -l",
    "find /var/log -name '*.log' -print0 | xargs -0 grep -c error",
    'pgrep nginx | xargs -n 1 ps -o pid,rss -p',
    'pgrep nginx | xargs -P 4 -n 1 ps -o pid,rss -p',
  ])('%s runs without approval', (text) => expect(verdictOf(text)).toBe('run'))

  test.each([
    "echo '-l /srv/x.log' | xargs -n1 gzip",
    "echo '-l /srv/x.log' | xargs -L1 gzip",
    "echo '/etc/hostname /srv/out' | xargs -L1 uniq",
    "echo '-n /dev/sdb1' | xargs -n1 xfs_repair",
    "echo '-d /etc/logrotate.conf' | xargs -n1 logrotate",
    "echo '-l a.zip' | xargs -n 1 unzip",
    "echo '-l x' | xargs -s 9 gzip",
    "echo '-l x' | xargs -n 2 -n 1 gzip",
    "echo '/var/logx/etc/shadow' | xargs -d x cat",
    "echo '/srv/a /etc/shadow' | xargs -E /etc/shadow cat",
    "printf '%s' /etc/shadow | xargs cat",
    'echo a | xargs -a /srv/list cat',
    "find /srv/app -name '*.log' -print0 | xargs -0 uniq",
    "find /srv/app -name '*.log' -exec uniq {} +",
    "find /srv/app -name '*.log' -exec diff {} + -exec uniq {} \\;",
  ])('%s does not', (text) => expect(verdictOf(text)).not.toBe('run'))
})

test('a program whose words come from empty input is judged without them as well', () => {
  expect(verdictOf('gzip -t -S $(pgrep none) -l /srv/x')).not.toBe('run')
  expect(verdictOf('sort $(pgrep none) -o/srv/x /srv/y')).not.toBe('run')
})
