import { describe, expect, test } from '@jest/globals'
import { dialects } from '../../ingest/dialects.ts'

const now = '2026-11-22T03:00:00.000Z'
const earlier = '2026-11-22T02:00:00.000Z'

/** One alert of each dialect with these times; what each makes of them. */
function parsed(dialect: string, times: Record<string, unknown>, status = 'firing') {
  const body =
    dialect !== 'generic'
      ? { alerts: [{ status, labels: { alertname: 'x' }, annotations: {}, ...times }] }
      : { summary: 'x', action: status === 'resolved' ? 'close' : 'trigger', ...times }
  const answer = dialects[dialect]?.parse(new TextEncoder().encode(JSON.stringify(body)), now)
  if (!answer?.ok) throw new Error(answer?.reason ?? 'no dialect')
  return answer.alerts[0]
}

// What the table of paths reads is in doors.test.ts.
describe.each(['alertmanager', 'grafana', 'generic'])('times that %s cannot mean', (dialect) => {
  test.each([
    ['absent', {}],
    ['not a time', { startsAt: 'yesterday' }],
    ['a number', { startsAt: 1_700_000_000 }],
    ['on 30 February', { startsAt: '2026-02-30T03:00:00Z' }],
    ['on 31 April', { startsAt: 'Thu Apr 31 2026 03:00:00 GMT' }],
    ['an hour ahead', { startsAt: '2026-11-22T04:00:00Z' }],
  ])('a start that is %s becomes the time of receipt and starts no occurrence', (_what, times) => {
    expect(parsed(dialect, times)).toMatchObject({ startsAt: now, startGiven: false })
  })

  test('a start four minutes ahead comes from a wrong clock, and is accepted', () => {
    const startsAt = '2026-11-22T03:04:00.000Z'
    expect(parsed(dialect, { startsAt })).toMatchObject({ startsAt, startGiven: true, timeNotes: [] })
  })

  test('the note says what would be accepted', () => {
    const [note] = parsed(dialect, { startsAt: '2026-11-22T04:00:00Z' })?.timeNotes ?? []
    expect(note).toMatch(/^startsAt is in the future .*write a time in RFC 3339, such as 2026-11-22T03:04:05Z/)
  })

  test('an end in the future is an end now, and an end before its own start is kept and ends nothing', () => {
    expect(parsed(dialect, { startsAt: earlier, endsAt: '2026-11-23T03:00:00Z' }, 'resolved')).toMatchObject({
      endsAt: now,
    })
    const reversed = parsed(dialect, { startsAt: earlier, endsAt: '2026-11-22T01:00:00Z' }, 'resolved')
    expect(reversed).toMatchObject({ endsAt: '2026-11-22T01:00:00.000Z' })
    expect(reversed?.timeNotes?.[0]).toContain('so the end is ignored')
  })

  test('while the alert fires, an end time is ignored', () => {
    expect(parsed(dialect, { startsAt: earlier, endsAt: '0001-01-01T00:00:00Z' })).toMatchObject({ endsAt: null })
  })
})
