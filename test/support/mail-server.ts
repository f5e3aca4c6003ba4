import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { selfSigned } from './local-server.ts'

/** A mail as a real SMTP server took it. */
export type TakenMail = { from: string; to: string[]; user: string; isSecure: boolean; raw: string }

export type TestMailServer = {
  port: number
  /** PEM of its own authority. */
  ca: string
  taken: TakenMail[]
  /** What it answers to the next mails; null: it takes them. */
  refuse(answer: { code: number; words: string } | null): void
  close(): Promise<void>
}

type MailServerKind = { tls: 'starttls' | 'tls' | 'none'; user?: { name: string; password: string } }

/** An SMTP server on this machine, with TLS and a sign-in where it is asked for them. */
export async function startMailServer({ tls, user }: MailServerKind): Promise<TestMailServer> {
  const { cert, key } = selfSigned()
  const taken: TakenMail[] = []
  let refusal: { code: number; words: string } | null = null
  const refused = () => Object.assign(new Error(refusal?.words), { responseCode: refusal?.code })
  const server = new SMTPServer({
    cert,
    key,
    secure: tls === 'tls',
    logger: false,
    authOptional: !user,
    disabledCommands: [...(tls === 'none' ? ['STARTTLS'] : []), ...(user ? [] : ['AUTH'])],
    onAuth: ({ username, password }, _session, done) =>
      username === user?.name && password === user?.password
        ? done(null, { user: username })
        : done(Object.assign(new Error(`no such user as ${username} with ${password}`), { responseCode: 535 })),
    onRcptTo: ({ address }, _session, done) =>
      done(address.startsWith('nobody@') ? Object.assign(new Error('no such mailbox'), { responseCode: 550 }) : null),
    onData(stream, session, done) {
      let raw = ''
      stream.setEncoding('utf8')
      stream.on('data', (piece: string) => {
        raw += piece
      })
      stream.on('end', () => {
        if (refusal) return done(refused())
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom ? mailFrom.address : ''
        const to = rcptTo.map(({ address }) => address)
        taken.push({ from, to, user: String(session.user ?? ''), isSecure: session.secure, raw })
        return done(null, 'taken')
      })
    },
  })
  // A client that trusts nobody breaks off, which is its right.
  server.on('error', () => {})
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening))
  return {
    port: (server.server.address() as AddressInfo).port,
    ca: cert,
    taken,
    refuse(answer) {
      refusal = answer
    },
    close: () => new Promise((closed) => server.close(closed)),
  }
}

/** Headers by their small names, unfolded; and the parts of the body, decoded. */
export function readMail({ raw }: TakenMail) {
  const [head = '', ...rest] = raw.split('\r\n\r\n')
  const headers = headersOf(head)
  const [, boundary = ''] = /boundary="([^"]+)"/.exec(headers['content-type'] ?? '') ?? []
  const parts = rest.join('\r\n\r\n').split(`--${boundary}`).slice(1, -1).map(decodePart)
  return { headers, text: parts[0] ?? '', html: parts[1] ?? '' }
}

function headersOf(head: string): Record<string, string> {
  const lines = head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
}

function decodePart(part: string): string {
  const [head = '', ...rest] = part.trimStart().split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  const encoding = headersOf(head)['content-transfer-encoding']
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  if (encoding !== 'quoted-printable') return body
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
