import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Notification } from '../../../domain/notification.ts'
import { renderSlack } from '../../../notify/slack/notification.ts'
import { hostileTitles, notification } from '../../support/scripted-slack.ts'

const options = { deliveryId: 'msg_1', now: new Date(), secret: null }

type Text = { type: string; text: string }

type Block = { type: string; text?: Text; fields?: Text[]; elements?: (Text & { url?: string; text: unknown })[] }

function slack(given: Notification): { text: string; blocks: Block[] } {
  return JSON.parse(renderSlack(given, options).body)
}

function inspect(given: Notification): void {
  const { text, blocks } = slack(given)
  const texts: Text[] = blocks.flatMap((block) => [
    ...(block.text ? [block.text] : []),
    ...(block.fields ?? []),
    ...(block.elements ?? []).map((one) =>
      one.type === 'button' ? (one.text as unknown as Text) : (one as unknown as Text),
    ),
  ])
  // Slack's documented limits.
  expect(blocks.length).toBeLessThanOrEqual(45)
  expect(blocks[0]!.text!.text.length).toBeLessThanOrEqual(150)
  for (const block of blocks) {
    if (block.type === 'section' && block.text) expect(block.text.text.length).toBeLessThanOrEqual(3_000)
    for (const field of block.fields ?? []) expect(field.text.length).toBeLessThanOrEqual(2_000)
    expect(block.fields?.length ?? 0).toBeLessThanOrEqual(10)
  }
  expect(JSON.stringify(blocks).length).toBeLessThan(12_000)
  // No element in which Slack reads formatting, and no word it reacts to.
  for (const one of [...texts, { type: 'plain_text', text }]) {
    expect(one.type).toBe('plain_text')
    expect(one.text.length).toBeGreaterThan(0)
    expect(one.text).not.toMatch(/[<>]/)
    expect(one.text).not.toMatch(/@(channel|here|everyone|group)/i)
    expect(one.text).not.toMatch(/&(?!amp;|lt;|gt;)/) // an entity is never cut
    expect(one.text).not.toMatch(/(?!\n)[\p{Cc}\u202A-\u202E\u2066-\u2069]/u)
    expect(one.text.isWellFormed()).toBe(true)
  }
}

test('Slack shows what happened, on which resource, and a link', () => {
  const { text, blocks } = slack(notification({ trigger: 'escalated', reason: 'the replica does not catch up' }))
  expect(text).toBe('Escalated: MySQL replication lag exceeded 30s (shard db-osl-1)')
  expect(blocks.map((block) => block.type)).toEqual(['header', 'section', 'section', 'actions', 'context'])
  expect(blocks[0]!.text!.text).toBe('Escalated: MySQL replication lag exceeded 30s')
  expect(blocks[1]!.fields!.map((field) => field.text)).toContain('Resource: shard db-osl-1')
  expect(blocks[2]!.text!.text).toBe('the replica does not catch up')
  expect(blocks[3]!.elements![0]!.url).toBe('https://nightshift.example/incidents/inc_1')
})

test('a link that is no web address is no button', () => {
  for (const url of ['javascript:alert(1)', '', `https://a.example/${'x'.repeat(3_000)}`]) {
    expect(slack(notification({ url })).blocks.some((block) => block.type === 'actions')).toBe(false)
  }
})

test.each(hostileTitles)('Slack shows the title %j inert and within its limits', (title) => {
  inspect(notification({ title, reason: title }))
})

test('for any name of an alert Slack gets a message that it accepts', () => {
  const text = fc.string({ unit: 'binary', maxLength: 6_000 })
  fc.assert(fc.property(text, text, (title, reason) => inspect(notification({ title, reason }))))
})
