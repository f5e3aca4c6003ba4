import { expect, test } from '@jest/globals'
import { plainApproval } from '../../api/routes/approval-html.ts'
import { formatApproval } from '../../cli/approvals/card.ts'
import { type CardSection, cardSections } from '../../domain/card-sections.ts'
import { formatMinute } from '../../domain/format.ts'
import type { Notification } from '../../domain/notification.ts'
import { renderMail } from '../../notify/email/message.ts'
import { renderEvent } from '../../notify/pagerduty/events.ts'
import { renderCard } from '../../notify/slack/card.ts'
import { renderNotification } from '../../notify/slack/notification.ts'
import { renderCard as renderTeams } from '../../notify/teams/card.ts'
import { approval, incidents } from '../../web/gallery/worst.ts'
import { notification } from '../support/scripted-slack.ts'

/** A question with all that a card can say: a cost, doubts, no proof and no way back. */
const asked = {
  ...approval,
  reversible: false,
  dryRun: {
    possible: true,
    summary: 'start 3 VMs; vm-9 stays down',
    details: {
      unplaced: [{ vm: 'vm-9', reason: 'no host has room' }],
      obstacle: 'it takes one host more',
      rehearsal: { told: ['it runs as user 7'], untried: ['make was not tried.'] },
    },
    proof: { by: 'nothing' as const, text: 'it has no state to read' },
  },
}
const cause = 'Cause (supported): the host lost its power [#9]'
const before = Date.parse(asked.expiresAt) - 600_000
const about = { kind: 'host' as const, id: 'host-osl-2' }
const sectionsIn = (moment: (iso: string) => string) => cardSections(asked, { isOpen: true, moment, cause, about })
const messageOf = (sections: CardSection[]): Notification =>
  notification({
    trigger: 'approval',
    reason: asked.reason,
    approval: {
      ...{ id: asked.id, tool: asked.tool, risk: asked.risk, reversible: asked.reversible, required: asked.required },
      ...{ summary: asked.dryRun.summary, expiresAt: asked.expiresAt, reminder: 0, cause },
      sections: sections.map(({ title, sentences }) => ({ title, text: sentences.join(' ') })),
    },
  })
const place = { deliveryId: 'dlv_1', destination: 'dst_1', domain: 'nightshift.example', isFirst: true }
const mail = () => renderMail(messageOf(sectionsIn(formatMinute)), place)

const doors: Record<string, () => string> = {
  'without JavaScript': () =>
    String(
      plainApproval(
        {
          ...asked,
          cause,
          unheardAt: null,
          evidence: [],
          run: null,
          next: [],
          together: [],
          approvers: ['bo'],
          asked: [],
          about,
          deaths: [],
        },
        { name: 'anna', may: true, said: null },
        before,
      ),
    ),
  'at the terminal': () => formatApproval({ ...asked, about }, before),
  'in Slack': () =>
    JSON.stringify(renderCard(asked, incidents[0] as never, 'https://a.example', 'b', { cause, evidence: [] })),
  "by Slack's webhook": () => JSON.stringify(renderNotification(messageOf(sectionsIn(formatMinute)))),
  'in Teams': () => renderTeams(messageOf(sectionsIn(formatMinute))).body,
  'in a mail': () => mail().text,
  "in a mail's HTML": () => mail().html,
  'at PagerDuty': () => renderEvent(messageOf(sectionsIn(formatMinute)), 'key', { deliveryId: 'dlv_1' }).body,
}

/** Words alone: how a door breaks, quotes and marks them is its own. */
const wordsOf = (text: string) =>
  text
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\\n|&quot;|&#39;|&gt;|["'>]/g, ' ')
    .replaceAll(/\s+/g, ' ')

test.each(Object.entries(doors))('a person who is asked reads every section of the card %s', (_, render) => {
  const said = wordsOf(render())
  for (const { name, title, sentences } of sectionsIn(formatMinute)) {
    expect(said).toContain(title)
    // Each door writes a time as its reader reads times, and the terminal shows the cause with its
    // rows.
    for (const sentence of sentences)
      if (name !== 'wait' && sentence !== cause) expect(said).toContain(wordsOf(sentence).trim())
  }
})

/** The longest that a run stores: names, reasons of who stays down, and its own words. */
const long = {
  ...asked,
  reason: 'because it is so. '.repeat(110),
  targets: Array.from({ length: 40 }, (_, at) => ({ kind: 'vm' as const, id: `${at}${'-long'.repeat(50)}` })),
  dryRun: {
    ...asked.dryRun,
    details: { unplaced: Array.from({ length: 40 }, (_, at) => ({ vm: `vm-${at}`, reason: 'no room '.repeat(30) })) },
  },
}
const lookedAt = new Date(Date.parse(long.requestedAt) - 5 * 3_600_000).toISOString()
const evidence = [{ seq: 3, what: 'look' as const, tool: 't', about: [], found: 'off', isSaid: true, at: lookedAt }]
const messageTo: Record<string, (sections: CardSection[], question: typeof long) => string> = {
  'in Slack': (_, question) =>
    JSON.stringify(renderCard(question, { ...incidents[0], resource: about } as never, '', 'b', { cause, evidence })),
  "by Slack's webhook": (sections) => JSON.stringify(renderNotification(messageOf(sections))),
  'in Teams': (sections) => renderTeams(messageOf(sections)).body,
  'in a mail': (sections) => renderMail(messageOf(sections), place).text,
  'at PagerDuty': (sections) => renderEvent(messageOf(sections), 'key', { deliveryId: 'dlv_1' }).body,
}
const sent = (door: string, question: typeof long) =>
  messageTo[door]?.(cardSections(question, { isOpen: true, moment: formatMinute, cause, about, lookedAt }), question)

test.each(Object.keys(messageTo))('no list of long names displaces a warning or the cause %s', (door) => {
  const said = sent(door, long)
  for (const words of ['The action cannot be undone', 'The incident is about host', 'The newest check', cause])
    expect(said).toContain(words)
})

test.each(Object.keys(messageTo))('no line of a reason looks like a section of the card %s', (door) => {
  const forged = 'Undo: The action can be reversed.'
  for (const reason of [forged, `it is slow.\n\n${forged}`, `it is slow.\u2028${forged}`]) {
    const said = sent(door, { ...long, reason })
    expect(said).toContain(forged)
    expect(said).not.toMatch(/(\n|\\n|"text":")Undo: The action can be/)
  }
})
