import { describe, expect, test } from '@jest/globals'
import type { Alert } from '../../domain/alert.ts'
import { foldWord, parseStateRules, stateMeanings } from '../../domain/state-words.ts'
import { parseAlertmanager } from '../../ingest/alertmanager.ts'
import { parseGeneric } from '../../ingest/generic.ts'
import { stateSenders } from '../../ingest/state-senders.ts'
import type { SiteWords } from '../../ingest/state-words.ts'

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

function read(
  state: unknown,
  more: object = {},
  site?: Partial<SiteWords>,
): Pick<Alert, 'status' | 'endReason' | 'stateWord'> {
  const body = { title: 'web-1 is down', dedup: 'web-1', state, ...more }
  const parsed = parseGeneric(bytesOf(body), '2026-11-21T02:00:00.000Z', { rules: [], token: null, ...site })
  if (!parsed.ok) throw new Error(parsed.reason)
  const { status, endReason, stateWord } = parsed.alerts[0]!
  return { status, ...(endReason !== undefined && { endReason }), ...(stateWord !== undefined && { stateWord }) }
}

const ended = { status: 'resolved' }
const fires = { status: 'firing' }

/** As each sender's own page names its states, in its own spelling. */
const documented: [sender: string, ends: string[], fires: string[]][] = [
  ['Zabbix', ['OK', 'RESOLVED', '0'], ['PROBLEM', '1']],
  ['Icinga', ['RECOVERY', 'UP', 'OK'], ['PROBLEM', 'DOWN', 'CRITICAL', 'WARNING', 'UNKNOWN']],
  ['Nagios', ['RECOVERY', 'UP', 'OK'], ['PROBLEM', 'UNREACHABLE', 'ACKNOWLEDGEMENT']],
  ['Checkmk', ['RECOVERY', 'OK', 'UP'], ['PROBLEM', 'CRIT', 'WARN', 'UNREACH']],
  ['Netdata', ['CLEAR'], ['WARNING', 'CRITICAL']],
  ['UptimeRobot', ['Up', '2'], ['Down', '1']],
  ['Pingdom', ['UP', 'SUCCESS'], ['DOWN', 'FAILING']],
  ['Healthchecks', ['up'], ['down']],
  ['CloudWatch', ['OK'], ['ALARM']],
  ['PRTG', ['Up'], ['Down', 'Down (Acknowledged)', 'Warning', 'Unusual']],
  ['Uptime Kuma', ['✅ Up', '1'], ['🔴 Down', '0', 'PENDING']],
  ['StatusCake', ['Up'], ['Down']],
  ['Datadog', ['Recovered'], ['Triggered', 'Re-Triggered', 'Warn']],
  ['Grafana', ['Normal', 'ok'], ['Alerting', 'Pending', 'Error']],
  ['Prometheus', ['inactive'], ['firing', 'pending', 'active']],
  ['systemd', ['active'], ['failed', 'inactive']],
  ['Argo CD', ['Healthy'], ['Degraded']],
]

describe('a sender that a body names', () => {
  test.each(documented)(
    '%s: its words for a recovery end the alert, and its words for trouble fire',
    (sender, over, trouble) => {
      for (const word of over) expect([word, read(word, { sender })]).toEqual([word, ended])
      for (const word of trouble) expect([word, read(word, { sender })]).toEqual([word, fires])
    },
  )

  test('is named by a field, a label or the token of the body, by its common name', () => {
    for (const named of ['zabbix', 'Zabbix prod', 'zabbix-eu1']) {
      expect(read(0, { source: named })).toEqual(ended)
      expect(read(0, { labels: { monitoring_tool: named } })).toEqual(ended)
      expect(read(0, {}, { token: named })).toEqual(ended)
    }
    expect(read(0, { sender: 'uptime-kuma' })).toEqual(fires)
  })

  test('has only its own words, and an unknown word is named and fires', () => {
    expect(read('CLEAR', { sender: 'zabbix' })).toEqual({ ...fires, stateWord: 'CLEAR' })
    expect(read('UP', { sender: 'netdata' })).toEqual({ ...fires, stateWord: 'UP' })
  })

  test.each([
    ['CloudWatch', 'INSUFFICIENT_DATA', 'firing'],
    ['Datadog', 'No Data', 'firing'],
    ['Grafana', 'no_data', 'firing'],
    ['Netdata', 'REMOVED', 'resolved'],
    ['UptimeRobot', 'paused', 'resolved'],
    ['Uptime Kuma', 'MAINTENANCE', 'resolved'],
    ['PRTG', 'Paused', 'resolved'],
  ])('%s: %s is no end', (sender, word, status) => {
    expect(read(word, { sender })).toEqual({ status, endReason: word })
  })
})

describe('a body that names no sender', () => {
  test('uses words that all their senders use alike: an outage that arrived as DOWN ends with UP', () => {
    expect(read('DOWN')).toEqual(fires)
    for (const word of ['up', 'UP', 'RECOVERY', 'CLEAR', 'Normal', 'healthy', 'OK', 'ok', 'Resolved', 'closed'])
      expect([word, read(word)]).toEqual([word, ended])
  })

  test.each([
    '0',
    0,
    1,
    'unknown',
    'paused',
    'inactive',
    'active',
    'fixed',
    'no longer',
    'Deactivated',
    'ended',
    'true',
    false,
    '???',
  ])('fires with %j, which alone has no meaning, and the word is named', (word) => {
    expect(read(word)).toEqual({ ...fires, stateWord: String(word) })
  })

  test('without any word fires, and names nothing', () => {
    expect(read(undefined)).toEqual(fires)
    expect(read('  ')).toEqual(fires)
  })
})

test('the words of a site have priority, and words for one sender over words for all', () => {
  const parsed = parseStateRules('fixed = ends; Nominell = ends\nzabbix: fixed = fires; OK = no_data; scada: 7 = off')
  if (!parsed.ok) throw new Error(parsed.reason)
  const site = { rules: parsed.rules }
  expect(read('FIXED', {}, site)).toEqual(ended)
  expect(read('fixed', { sender: 'Zabbix' }, site)).toEqual(fires)
  expect(read('nominell', {}, site)).toEqual(ended)
  expect(read('ok', {}, site)).toEqual({ ...fires, endReason: 'ok' })
  expect(read('7', { source: 'scada' }, site)).toEqual({ ...ended, endReason: '7' })
  expect(read('7', {}, site)).toEqual({ ...fires, stateWord: '7' })
})

test.each([
  'fixed',
  'fixed = over',
  '= ends',
  '🔥 = ends',
  `${'x'.repeat(120)} = ends`,
  Array(201).fill('a = ends').join(';'),
])('%j is refused as a setting, with a reason', (text) => {
  expect(parseStateRules(text)).toMatchObject({ ok: false, reason: expect.stringMatching(/./) })
})

test("Alertmanager's other words are named, and fire", () => {
  const statusOf = (status: unknown) => {
    const body = bytesOf({ alerts: [{ status, labels: { alertname: 'X' } }] })
    const parsed = parseAlertmanager(body, '2026-11-21T02:00:00.000Z')
    return parsed.ok ? parsed.alerts[0] : null
  }
  expect(statusOf('suppressed')).toMatchObject({ status: 'firing', stateWord: 'suppressed' })
  expect(statusOf('Resolved')?.stateWord).toBeUndefined()
  expect(statusOf(undefined)?.stateWord).toBeUndefined()
})

test('every word of the list is folded, has one meaning for its sender, and its page is named', () => {
  for (const sender of stateSenders) {
    const words = stateMeanings.flatMap((means) => (sender[means] ?? '').split(', ').filter(Boolean))
    expect([sender.name, new Set(words).size]).toEqual([sender.name, words.length])
    for (const word of [...words, ...(sender.also ?? '').split(', ').filter(Boolean)]) expect(word).toBe(foldWord(word))
    expect(sender.from).toMatch(/^https:\/\//)
  }
})
