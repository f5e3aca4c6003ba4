import { describe, expect, test } from '@jest/globals'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'

const rootReads = [
  ['ss', '-tlnp'],
  ['/usr/bin/ss', '-tlnp'],
  ['cat', '/var/log/app log'],
  ['ls', '/root/*'],
  ['git', '-C', '/srv/app', 'status'],
  ['psql', '-c', 'select 1'],
  ['rm', '/tmp/x'],
  ['cat', '/etc/shadow'],
  ['tail', '-f', '/var/log/syslog'],
  ['/home/ops/ss', '-tlnp'],
]
const context: CommandContext = { knownHosts: new Set(), rootReads, directory: '/' }
const judged = (text: string, changes: Partial<CommandContext> = {}) => judgeCommand(text, { ...context, ...changes })

describe('a read that root may run is not asked about', () => {
  test.each<[string, string[], string | null]>([
    ['sudo -n ss -tlnp', ['ss', '-tlnp'], null],
    ['  sudo -n /usr/bin/ss -tlnp\n', ['/usr/bin/ss', '-tlnp'], null],
    // The same words in another dress are the same words.
    [`sudo -n "ss" '-tlnp'`, ['ss', '-tlnp'], null],
    [`sudo -n ss -t''lnp`, ['ss', '-tlnp'], null],
    [`sudo -n cat '/var/log/app log'`, ['cat', '/var/log/app log'], null],
    ['sudo -n ss -tlnp | grep 5432', ['ss', '-tlnp'], 'grep 5432'],
    ['sudo -n ss -tlnp | grep 5432 | wc -l', ['ss', '-tlnp'], 'grep 5432 | wc -l'],
  ])('%s', (text, argv, rest) => {
    expect(judged(text)).toMatchObject({ verdict: 'run', needsRoot: true, rootRead: { argv, rest }, sees: [] })
  })

  test('also as words for a program', () => {
    expect(judgeArgv(['sudo', '-n', 'ss', '-tlnp'], context)).toMatchObject({
      verdict: 'run',
      rootRead: { argv: ['ss', '-tlnp'], rest: null },
    })
  })
})

describe('any other command of root asks', () => {
  test.each([
    ['without -n', 'sudo ss -tlnp'],
    ['another word', 'sudo -n ss -tln'],
    ['a word more', 'sudo -n ss -tlnp -K'],
    ['a word less', 'sudo -n ss'],
    ['words in another order', 'sudo -n -tlnp ss'],
    ['two words as one', 'sudo -n "ss -tlnp"'],
    ['an option of sudo', 'sudo -n -E ss -tlnp'],
    ['options of sudo in one word', 'sudo -nE ss -tlnp'],
    ['the long option', 'sudo --non-interactive ss -tlnp'],
    ['another user', 'sudo -n -u postgres ss -tlnp'],
    ['the end of options', 'sudo -n -- ss -tlnp'],
    ['a variable for root', 'sudo -n LD_PRELOAD=/tmp/x.so ss -tlnp'],
    ['a variable before it', 'LANG=C sudo -n ss -tlnp'],
    ['env before it', 'env sudo -n ss -tlnp'],
    ['timeout before it', 'timeout 5 sudo -n ss -tlnp'],
    ['sudo of another place', '/usr/local/bin/sudo -n ss -tlnp'],
    ['a program of another place', 'sudo -n /bin/ss -tlnp'],
    ['an unusual place, though it is listed', 'sudo -n /home/ops/ss -tlnp'],
    ['a shell that reads the words', `sudo -n sh -c 'ss -tlnp'`],
    ['a shell round it', `bash -c 'sudo -n ss -tlnp'`],
    ['a file for its output', 'sudo -n ss -tlnp > /tmp/x'],
    ['a file for its errors', 'sudo -n ss -tlnp 2>/tmp/x'],
    ['a file for its input', 'sudo -n ss -tlnp < /etc/hosts'],
    ['a text for its input', 'sudo -n ss -tlnp <<< x'],
    ['both outputs into the pipe', 'sudo -n ss -tlnp |& grep x'],
    ['a command after it', 'sudo -n ss -tlnp; uptime'],
    ['a command before it', 'uptime; sudo -n ss -tlnp'],
    ['a command where it fails', 'sudo -n ss -tlnp || uptime'],
    ['itself twice', 'sudo -n ss -tlnp; sudo -n ss -tlnp'],
    ['itself behind a pipe', 'uptime | sudo -n ss -tlnp'],
    ['itself again in the pipe', 'sudo -n ss -tlnp | sudo -n ss -tlnp'],
    ['xargs in the pipe', 'sudo -n ss -tlnp | xargs sudo -n ss -tlnp'],
    ['a write in the pipe', 'sudo -n ss -tlnp | tee /tmp/x'],
    ['a group', '(sudo -n ss -tlnp)'],
    ['a group in the pipe', 'sudo -n ss -tlnp | (cat; rm x)'],
    ['a loop in the pipe', 'sudo -n ss -tlnp | while read -r x; do echo "$x"; done'],
    ['a loop', 'for x in 1 2; do sudo -n ss -tlnp; done'],
    ['its opposite', '! sudo -n ss -tlnp'],
    ['in the background', 'sudo -n ss -tlnp &'],
    ['a substitution', 'echo "$(sudo -n ss -tlnp)"'],
    ['words from a variable', 'x=-tlnp; sudo -n ss $x'],
    ['a glob, though it is listed', 'sudo -n ls /root/*'],
    ['a brace', 'sudo -n ss {-tlnp,}'],
    ['a function of that name', 'sudo() { rm x; }; sudo -n ss -tlnp'],
    ['an alias of that name', `alias sudo='rm x'\nsudo -n ss -tlnp`],
    ['a write that is listed', 'sudo -n rm /tmp/x'],
    ['a secret that is listed', 'sudo -n cat /etc/shadow'],
    ['what obeys files of the place', 'sudo -n git -C /srv/app status'],
    ['what needs an environment', `sudo -n psql -c 'select 1'`],
    ['doas', 'doas -n ss -tlnp'],
    ['pkexec', 'pkexec ss -tlnp'],
  ])('%s', (_, text) => {
    expect([text, judged(text).verdict, judged(text).rootRead]).toEqual([text, 'ask', null])
  })

  test('an endless one, as unbounded', () => {
    expect(judged('sudo -n tail -f /var/log/syslog')).toMatchObject({ verdict: 'ask', code: 'UNBOUNDED' })
  })

  test('in another directory than /, where a word may lead elsewhere', () => {
    expect(judged('sudo -n ss -tlnp', { directory: '/srv' }).verdict).toBe('ask')
  })

  test('if nothing is listed', () => {
    expect(judged('sudo -n ss -tlnp', { rootReads: [] }).verdict).toBe('ask')
    expect(judged('sudo -n ss -tlnp', { rootReads: undefined }).verdict).toBe('ask')
  })
})

test('a command behind the pipe keeps its sandbox when the first runs as root', () => {
  expect(judged('ss -tlnp | grep 5432').sees).toEqual(['network'])
  expect(judged('sudo -n ss -tlnp | grep 5432')).toMatchObject({ sees: [], commands: ['grep'] })
})

test('a command that is never run is not run as root either, even if it is listed', () => {
  const listed = [['rm', '-rf', '/']]
  expect(judged('sudo -n rm -rf /', { rootReads: listed }).verdict).toBe('refuse')
})
