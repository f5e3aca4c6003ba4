import { beforeAll, describe, expect, test } from '@jest/globals'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { findRequestProblem } from '../../../safety/command/remote-exec-wrappers.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web', '101']) }
const judged = (text: string, more: Partial<CommandContext> = {}) => judgeCommand(text, { ...context, ...more })

beforeAll(loadSql)

describe('a request to a web server', () => {
  test.each([
    '',
    '/',
    '/health',
    '/healthz?verbose',
    '/_cat/indices?v&s=index',
    '/v1/health/service/web?passing',
    '/stats;csv',
  ])('%j only reads', (target) => expect(findRequestProblem(target)).toBeNull())
  test.each([
    '/admin',
    '/health?shutdown=true',
    '/health/../admin',
    '/health/%2e%2e/admin',
    '//admin',
    '/health;/admin',
    '/_cat/../_shutdown',
    '/_all/_close',
    '/v1/health/service/../../kv/x',
    '/actuator/env',
    `/api/v1/query?query=${'x'.repeat(2_001)}`,
  ])('%j is not known as read-only', (target) => expect(findRequestProblem(target)).not.toBeNull())

  test('that goes to the address of cloud credentials is asked about even if the address is known', () => {
    const knownHosts = new Set(['169.254.169.254', 'metadata.google.internal'])
    expect(judged('curl -s http://169.254.169.254/', { knownHosts }).verdict).toBe('ask')
    expect(judged('curl -s http://metadata.google.internal/', { knownHosts }).verdict).toBe('ask')
  })
})

describe('a command whose input another command finds', () => {
  test.each([
    ['a loop over words', 'for h in db1 localhost; do ssh $h uptime; done'],
    ['a loop over numbers', 'for i in {1..3}; do cat /proc/loadavg; sleep 1; done'],
    ['a loop over known output', 'for i in $(seq 1 3); do uptime; done'],
    ['logs that find names', "find /var/log -name '*.log' -exec grep -l error {} +"],
    ['files of one kind', "find /srv/app -name '*.log' -exec tail -n 5 {} \\;"],
    ['sizes of anything', 'find /srv -type f -exec ls -lh {} \\;'],
    ['paths without blanks between', "find /var/log -name '*.log' -print0 | xargs -0 grep -c error"],
    ['process numbers', 'pgrep nginx | xargs ps -o pid,rss -p'],
    ['a process number in a path', 'cat /proc/$(pgrep -o nginx)/status'],
    ['a date in a pattern', 'grep "$(date +%F)" /var/log/syslog'],
    ['a group', '(date; uptime) | head -2'],
    ['a condition', 'if systemctl is-active -q nginx; then echo up; else echo down; fi'],
    ['a question that is known', 'echo ruok | nc localhost 2181'],
    ['an empty input', 'openssl s_client -connect db1:443 </dev/null | openssl x509 -noout -dates'],
  ])('runs without approval: %s', (_, text) => expect(judged(text)).toMatchObject({ verdict: 'run' }))

  test.each([
    ['one round of a loop', 'for h in db1 elsewhere; do ssh $h uptime; done', 'EXFILTRATION'],
    ['a variable that programs obey', 'for PATH in /tmp; do ls; done', 'SHAPE'],
    ['what lies below a home', 'find /home -type f -exec cat {} +', 'SENSITIVE_PATH'],
    ['a hidden file of that name', "find /srv -name '.env' -exec cat {} +", 'SENSITIVE_PATH'],
    ['a name with a blank in it', "find /var/log -name '*.log' | xargs cat", 'WRAPPER'],
    ['an operand inside a word', "find /var/log -exec sh -c 'cat {}' \\;", 'WRAPPER'],
    ['a process number that is killed', 'pgrep nginx | xargs kill', 'UNKNOWN_COMMAND'],
    ['a plus sign that ends nothing', 'find /tmp -exec + x \\;', 'UNKNOWN_COMMAND'],
    ['what find does besides', 'find /var/log -delete -exec ls {} \\;', 'ARGUMENT'],
    ['what is sent', 'cat /etc/hosts | nc db1 80', 'ARGUMENT'],
    ['what is sent through a group', 'cat /etc/hosts | (openssl s_client -connect db1:443)', 'ARGUMENT'],
  ])('asks because of %s', (_, text, code) => expect(judged(text)).toMatchObject({ verdict: 'ask', code }))
})

test('sudo runs without approval only what the manifest allows word for word', () => {
  const rootReads = [
    ['ss', '-tlnp'],
    ['rm', 'x'],
  ]
  expect(judged('sudo -n ss -tlnp', { rootReads })).toMatchObject({ verdict: 'run', needsRoot: true })
  for (const text of [
    'sudo ss -tlnp',
    'sudo -n ss -tln',
    'sudo -n -u bob ss -tlnp',
    'sudo -n A=b ss -tlnp',
    'sudo -n rm x',
  ])
    expect(judged(text, { rootReads }).verdict).toBe('ask')
  expect(judged('sudo -n ss -tlnp').verdict).toBe('ask')
})

test('a session of PostgreSQL gets a time limit that every role may set', () => {
  const { environment } = judged("psql -c 'select 1'")
  expect(environment.PGOPTIONS).toContain('statement_timeout=')
  // Only a superuser may set it: the session of another role would not begin.
  expect(environment.PGOPTIONS).not.toContain('temp_file_limit')
})

test('rows that a statement generates need a literal limit', () => {
  for (const sql of [
    'select * from generate_series(1, 100)',
    'select * from a join b on a.x = b.x',
    'select * from a, b where a.x = b.x',
    'with recursive t(n) as (select 1 union all select n + 1 from t where n < 10) select * from t',
  ])
    expect([sql, judged(`psql -c '${sql}'`).verdict]).toEqual([sql, 'run'])
  for (const sql of [
    'select * from generate_series(1, 100000000000)',
    'select * from generate_series(1, 1e11::bigint)',
    'select * from generate_series(1, 10000) a, generate_series(1, 10000) b',
    'select * from generate_series(1, (select count(*) from a))',
    'select * from a, b',
    'select * from a cross join b',
    'select * from a join b on true, c, d',
    'with recursive t(n) as (select 1 union all select n + 1 from t) select * from t',
    'with recursive t(n) as (select 1 union all select n + 1 from t where n < 100000000000) select * from t',
  ])
    expect([sql, judged(`psql -c '${sql}'`).verdict]).toEqual([sql, 'ask'])
})
