import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { MailServer } from '../../../domain/destination.ts'
import type { Notification } from '../../../domain/notification.ts'
import { renderMail } from '../../../notify/email/message.ts'
import { sendMessage } from '../../../notify/email/send.ts'
import { readMail, startMailServer, type TestMailServer } from '../../support/mail-server.ts'
import { hostileTitles, notification } from '../../support/scripted-slack.ts'

const user = { name: 'nightshift', password: 'correct horse battery' }
let upgraded: TestMailServer
let wrapped: TestMailServer
let plain: TestMailServer
beforeAll(async () => {
  upgraded = await startMailServer({ tls: 'starttls', user })
  wrapped = await startMailServer({ tls: 'tls', user })
  plain = await startMailServer({ tls: 'none' })
})
afterAll(async () => void (await Promise.all([upgraded, wrapped, plain].map((server) => server.close()))))

const to = ['ops@example.com', 'anna@example.com']
const settings = (server: TestMailServer, more: Partial<MailServer> = {}): MailServer => ({
  host: '127.0.0.1',
  port: server.port,
  tls: 'starttls',
  user: user.name,
  from: 'nightshift@example.com',
  to,
  ca: server.ca,
  ...more,
})
const place = { deliveryId: 'msg_1', destination: 'ops-mail', domain: 'example.com', isFirst: true }
const mail = (more: Partial<Notification> & { title?: string } = {}, where = {}) =>
  renderMail(notification(more), { ...place, ...where })
const send = (server: TestMailServer, more: Partial<MailServer> = {}, message = mail(), password = user.password) =>
  sendMessage(settings(server, more), password, message, 5_000)

test('a mail arrives over STARTTLS, and over TLS from the start, signed in', async () => {
  expect(await send(upgraded)).toMatchObject({
    outcome: 'sent',
    status: 250,
    responseSnippet: expect.stringContaining('taken'),
  })
  expect(await send(wrapped, { tls: 'tls' })).toMatchObject({ outcome: 'sent' })
  for (const server of [upgraded, wrapped])
    expect(server.taken.at(-1)).toMatchObject({
      from: 'nightshift@example.com',
      to,
      user: 'nightshift',
      isSecure: true,
    })
})

test('without TLS nothing is sent if TLS is required, and no password ever', async () => {
  const before = plain.taken.length
  expect(await send(plain)).toMatchObject({ outcome: 'drop', reason: expect.stringContaining('TLS') })
  expect(plain.taken).toHaveLength(before)
  expect(await send(plain, { tls: 'none', user: null }, mail(), '')).toMatchObject({ outcome: 'sent' })
  expect(plain.taken.at(-1)).toMatchObject({ user: '', isSecure: false })
})

test('an untrusted certificate is refused', async () => {
  const before = wrapped.taken.length
  expect(await send(wrapped, { tls: 'tls', ca: null })).toMatchObject({
    outcome: 'drop',
    reason: expect.stringContaining('TLS'),
  })
  expect(await send(upgraded, { ca: wrapped.ca })).toMatchObject({
    outcome: 'drop',
    reason: expect.stringContaining('TLS'),
  })
  expect(wrapped.taken).toHaveLength(before)
})

test("a wrong password is not tried again, and the server's repetition of it is not shown", async () => {
  const made = await send(upgraded, {}, mail(), 'a wrong password')
  expect(made).toMatchObject({ outcome: 'drop', status: 535 })
  expect(JSON.stringify(made)).not.toMatch(/a wrong password|nightshift with/)
})

test('a server with a temporary refusal is asked again, and one with a permanent refusal is not', async () => {
  upgraded.refuse({ code: 451, words: 'greylisted, come back for ops@example.com' })
  const later = await send(upgraded)
  expect(later).toMatchObject({ outcome: 'wait', status: 451, afterMs: 60_000, reason: 'the mail server answered 451' })
  expect(JSON.stringify(later)).not.toContain('ops@example.com')
  upgraded.refuse({ code: 554, words: 'spam\u001b[31m' })
  expect(await send(upgraded)).toMatchObject({
    outcome: 'drop',
    status: 554,
    responseSnippet: expect.not.stringMatching(/\p{Cc}/u),
  })
  upgraded.refuse(null)
})

test('an unreachable server is tried again, and a metadata address of a cloud is never reached', async () => {
  expect(await send({ ...plain, port: 1 })).toMatchObject({ outcome: 'retry', status: null })
  expect(await send(plain, { host: '169.254.169.254' })).toMatchObject({
    outcome: 'drop',
    reason: 'Nightshift may not connect to the address of the mail server',
  })
})

test('if some addresses are wrong the others get the mail, and the log says so', async () => {
  expect(await send(upgraded, { to: ['nobody@example.com', 'anna@example.com'] })).toMatchObject({
    outcome: 'sent',
    responseSnippet: expect.stringContaining('the server refused 1 of 2 addresses'),
  })
  expect(await send(upgraded, { to: ['nobody@example.com'] })).toMatchObject({ outcome: 'drop', status: 550 })
})

const hostile = [
  ...hostileTitles,
  'x\r\nBcc: evil@example.com\r\n\r\nHello',
  'x\nSubject: other',
  '=?utf-8?B?QmNjOiBldmls?=',
  '</h2><script>alert(1)</script><img src=x onerror=alert(1)> https://evil.example/approve',
  '.\r\n.\r\nMAIL FROM:<evil@example.com>',
]

test('no title adds a header or a recipient, makes a link or runs', async () => {
  for (const title of hostile) {
    const before = plain.taken.length
    const message = mail({ title, reason: `${title}\n.\n${title}`.slice(0, 50_000) })
    expect(await send(plain, { tls: 'none', user: null }, message, '')).toMatchObject({ outcome: 'sent' })
    expect(plain.taken).toHaveLength(before + 1)
    const taken = plain.taken.at(-1)!
    expect(taken.to).toEqual(to)
    const { headers, text, html } = readMail(taken)
    expect(Object.keys(headers).sort()).toEqual(expectedHeaders)
    expect(headers.to).toBe(to.join(', '))
    expect(html).not.toMatch(/<script|<img|href="(?!https:\/\/nightshift\.example\/)/i)
    for (const part of [text, html.replaceAll(/href="[^"]*"/g, '')])
      expect(part.replaceAll('https://nightshift.example/incidents/inc_1', '')).not.toMatch(/:\/\/\S|\bwww\./i)
  }
})

const expectedHeaders = [
  ...['auto-submitted', 'content-type', 'date', 'from', 'importance', 'message-id', 'mime-version', 'subject', 'to'],
  ...['x-auto-response-suppress', 'x-mailer'],
].sort()

test('an incident is one thread: later mails follow the first, under the same subject', () => {
  const [first, next, resolved] = [
    mail(),
    mail({ trigger: 'escalated', reason: 'why' }, { deliveryId: 'msg_2', isFirst: false }),
    mail({ trigger: 'resolved', page: false }, { deliveryId: 'msg_3', isFirst: false }),
  ]
  expect(first).toMatchObject({ messageId: '<inc_1.ops-mail@example.com>', inReplyTo: null, isUrgent: true })
  expect(next).toMatchObject({ messageId: '<msg_2.ops-mail@example.com>', inReplyTo: first.messageId })
  expect(resolved).toMatchObject({
    messageId: '<msg_3.ops-mail@example.com>',
    inReplyTo: first.messageId,
    isUrgent: false,
  })
  expect(new Set([first, next, resolved].map(({ subject }) => subject))).toEqual(
    new Set(['[Nightshift] MySQL replication lag exceeded 30s']),
  )
})

test('a message about several incidents begins no thread of an incident', () => {
  const incidents = [1, 2].map((n) => ({
    ...{ id: `inc_${n}`, title: `incident ${n}`, severity: 'critical' as const, status: 'escalated' as const },
    since: '2026-11-21T02:00:00Z',
  }))
  expect(mail({ trigger: 'digest', incidents })).toMatchObject({
    subject: '[Nightshift] Still firing, escalated: 2 incidents',
    messageId: '<msg_1.ops-mail@example.com>',
    inReplyTo: null,
  })
})

test('a question says that a reply approves nothing, and links to its card', () => {
  const url = 'https://nightshift.example/approvals/apr_1'
  const approval = {
    ...{ id: 'apr_1', tool: 'reboot', risk: 'high' as const, reversible: false, summary: 'Reboot db-osl-1' },
    ...{ required: 1, expiresAt: '2026-11-21T03:00:00Z', reminder: 0 },
  }
  const { text, html } = mail({ trigger: 'approval', approval, url, reason: 'It hangs' })
  expect(text).toContain(`Review request: ${url}`)
  expect(text).toContain('Nobody reads replies to this mail, and a reply approves nothing.')
  expect(html).toContain(`<a href="${url}">Review request</a>`)
})
