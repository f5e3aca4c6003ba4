import { expect, test } from '@jest/globals'
import { renderMail } from '../../notify/email/message.ts'
import { renderNotification } from '../../notify/slack/notification.ts'
import { renderCard } from '../../notify/teams/card.ts'
import { renderGeneric } from '../../notify/webhook/generic.ts'
import { hostileTitles, notification } from '../support/scripted-slack.ts'

const cardWith = (text: string) =>
  notification({
    trigger: 'morning',
    page: false,
    title: 'Morning of 2026-11-29: 1 question waits',
    lines: [
      { text, path: 'approvals/apr_1', url: 'https://nightshift.example/approvals/apr_1' },
      { text: 'and 3 more', path: null, url: null },
    ],
    url: 'https://nightshift.example/shift',
  })
const card = cardWith('Waits for you until 07:10 UTC: start 3 VMs (host-osl-1 is down)')
const place = { deliveryId: 'msg_1', destination: 'ops', domain: 'example.com', isFirst: false }

test('a mail has the card as the subject of its own thread, and each line with its link', () => {
  const { subject, inReplyTo, text, html, isUrgent } = renderMail(card, place)
  expect([subject, inReplyTo, isUrgent]).toEqual(['[Nightshift] Morning of 2026-11-29: 1 question waits', null, false])
  expect(text).toContain(
    '• Waits for you until 07:10 UTC: start 3 VMs (host-osl-1 is down)\n  https://nightshift.example/approvals/apr_1\n• and 3 more',
  )
  expect(html).toContain('<li><a href="https://nightshift.example/approvals/apr_1">Waits for you until 07:10 UTC')
  expect(text).not.toContain('Severity')
  expect(text).not.toContain('inc_1')
})

test('Slack gets a section for each line, with a button if it has a link', () => {
  const { blocks } = renderNotification(card) as { blocks: { type: string; text?: object; accessory?: object }[] }
  const lines = blocks.filter(({ type }) => type === 'section')
  expect(lines).toMatchObject([
    { text: { type: 'plain_text' }, accessory: { url: 'https://nightshift.example/approvals/apr_1' } },
    { text: { type: 'plain_text', text: 'and 3 more' } },
  ])
  expect(lines[1]).not.toHaveProperty('accessory')
})

test('Teams and a webhook get the lines, and the webhook says that it is about a shift', () => {
  expect(renderCard(card).body).toContain('start 3 VMs (host-osl-1 is down)')
  const sent = JSON.parse(renderGeneric(card, { deliveryId: 'msg_1', now: new Date(), secret: null }).body)
  expect(sent).toMatchObject({
    type: 'shift.morning',
    data: { page: false, lines: [{ url: 'https://nightshift.example/approvals/apr_1' }, { url: null }] },
  })
})

test.each(hostileTitles)('foreign words stay words on a card: %j', (title) => {
  const hostile = cardWith(`Escalated: ${title}`)
  const slack = JSON.stringify(renderNotification(hostile))
  expect(slack).not.toMatch(/<[!@#]/)
  expect(renderMail(hostile, place).html).not.toContain('<script')
  expect(renderMail(hostile, place).html.match(/<a /g)).toHaveLength(2)
  expect(slack.length).toBeLessThan(13_000)
})
