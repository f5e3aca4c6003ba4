import { expect, test } from '@jest/globals'
import type { Notification } from '../../../domain/notification.ts'
import { renderCard, teamsLimits } from '../../../notify/teams/card.ts'
import { hostileTitles, notification } from '../../support/scripted-slack.ts'

type Element = { type: string; inlines?: Element[]; text?: string; spacing?: string }
type Card = { type: string; version: string; body: Element[]; actions?: { type: string; title: string; url: string }[] }

const render = (more: Partial<Notification> & { title?: string } = {}) => {
  const { body } = renderCard(notification(more))
  const message = JSON.parse(body)
  return { bytes: Buffer.byteLength(body), message, card: message.attachments[0].content as Card }
}

const linesOf = ({ body }: Card) => body.map(({ inlines = [] }) => inlines.map(({ text }) => text).join(''))

const hostile = [
  ...hostileTitles,
  '[approve](https://evil.example) **bold** <at>Everybody</at>',
  '{{DATE(2026-01-01T00:00:00Z, SHORT)}} @{body}',
  'https://evil.example/approve www.evil.example',
]

test('for any alert the card stays below 28 KB, and its text has no formatting', () => {
  const long = (text: string) => text.repeat(Math.ceil(30_000 / (text.length || 1))).slice(0, 30_000)
  for (const title of hostile) {
    const reason = `${long(title)}\n${'line\n'.repeat(500)}`
    const { bytes, card } = render({ title, reason })
    expect(bytes).toBeLessThan(teamsLimits.message)
    // In runs of text alone Teams reads no Markdown.
    const types = new Set(card.body.flatMap(({ type, inlines = [] }) => [type, ...inlines.map((each) => each.type)]))
    expect([...types].sort()).toEqual(['RichTextBlock', 'TextRun'])
    const words = linesOf(card).join('\n')
    expect(words).not.toMatch(/<\/?at\b|\{\{|\}\}|:\/\/\S|\bwww\.|\u202e/iu)
  }
})

test('a message is in the form of a workflow: one adaptive card', () => {
  const { message, card } = render()
  expect(message).toMatchObject({
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null }],
  })
  expect([card.type, card.version]).toEqual(['AdaptiveCard', '1.4'])
  expect(linesOf(card).slice(0, 3)).toEqual([
    'Critical: MySQL replication lag exceeded 30s',
    'Severity: critical',
    'Status: open',
  ])
})

test('a question links to its card, and cannot be decided here', () => {
  const url = 'https://nightshift.example/approvals/apr_1'
  const approval = {
    ...{ id: 'apr_1', tool: 'reboot', risk: 'high' as const, reversible: false, summary: 'Reboot db-osl-1' },
    ...{ required: 1, expiresAt: '2026-11-21T03:00:00Z', reminder: 0 },
  }
  const { card } = render({ trigger: 'approval', approval, url, reason: 'It hangs' })
  expect(card.actions).toEqual([{ type: 'Action.OpenUrl', title: 'Review request', url }])
  expect(linesOf(card)).toContain('Risk: high, not reversible')
})

test('a report arrives in as many lines as it has', () => {
  const { card } = render({ trigger: 'escalated', reason: 'Found:\n- one\n- two\n\nNext step: look' })
  expect(linesOf(card)).toEqual(expect.arrayContaining(['Found:', '- one', '- two', 'Next step: look']))
})

test('an invalid address gets no button', () => {
  expect(render({ url: 'javascript:alert(1)' }).card.actions).toBeUndefined()
})

test('a list of several names each once and shows the number of the others', () => {
  const incidents = Array.from({ length: 50 }, (_, n) => ({
    id: `inc_${n}`,
    title: `incident ${n} ${'x'.repeat(300)}`,
    severity: 'critical' as const,
    status: 'escalated' as const,
    since: '2026-11-21T02:00:00Z',
  }))
  const { bytes, card } = render({ trigger: 'digest', incidents })
  expect(linesOf(card)).toContain('and 30 more')
  expect(bytes).toBeLessThan(teamsLimits.message)
})
