import { connect, isIP, type Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import { allows, guardedLookup } from './address.ts'

/** A mail server. `tls`: TLS from the start, required STARTTLS, or no TLS. */
type MailServer = {
  host: string
  port: number
  tls: 'starttls' | 'tls' | 'none'
  user: string | null
  password: string | null
  /** PEM of the trusted authorities, which replace the system's authorities. */
  ca: string | null
}

type Mail = {
  from: string
  to: readonly string[]
  subject: string
  messageId: string
  /** The id of the first mail of the thread. */
  inReplyTo: string | null
  headers: Record<string, string>
  text: string
  html: string
}

/**
 * A mail was not sent. `later`: the server may accept the mail later (4xx, no connection).
 * `status`: the server's code, if it responded.
 */
export class SmtpError extends Error {
  override name = 'SmtpError' as const
  readonly later: boolean
  readonly status: number | null
  /** The server's response, unchanged. */
  readonly said: string
  constructor(message: string, later: boolean, status: number | null = null, said = '') {
    super(message)
    this.later = later
    this.status = status
    this.said = said
  }
}

/**
 * Sends a mail over one connection, whose peer passed the address policy of webhooks. Returns the
 * server's response and the refused recipients. Throws SmtpError. No name, address or text can add
 * a line: the library folds and encodes headers, and doubles a dot at the start of a line.
 */
export async function sendMail(
  server: MailServer,
  mail: Mail,
  timeoutMs: number,
): Promise<{ said: string; rejected: string[] }> {
  const { host, port, tls, user, password, ca } = server
  const end = new AbortController()
  const timer = setTimeout(() => end.abort(), timeoutMs)
  let connection: Socket | null = null
  try {
    const opened = await open(host, port, end.signal)
    connection = opened
    const transport = createTransport({
      host,
      port,
      // Uses the opened socket, because the library's own connection checks no address policy.
      getSocket: (_options, callback) => callback(null, { connection: opened }),
      secure: tls === 'tls',
      requireTLS: tls === 'starttls',
      ignoreTLS: tls === 'none',
      tls: { minVersion: 'TLSv1.2', ...(isIP(host) === 0 && { servername: host }), ...(ca && { ca }) },
      // Forces the sign-in, because a server that does not request a sign-in would otherwise get
      // the mail without it.
      ...(user !== null && { auth: { user, pass: password ?? '' }, forceAuth: true }),
      disableFileAccess: true,
      disableUrlAccess: true,
      greetingTimeout: timeoutMs,
      socketTimeout: timeoutMs,
    })
    const { inReplyTo, to, ...rest } = mail
    const info = await transport.sendMail({
      ...rest,
      to: [...to],
      ...(inReplyTo && { inReplyTo, references: [inReplyTo] }),
      signal: end.signal,
    })
    return { said: String(info.response ?? ''), rejected: (info.rejected ?? []).map(String) }
  } catch (error) {
    throw toSmtpError(error, end.signal.aborted)
  } finally {
    clearTimeout(timer)
    connection?.destroy()
  }
}

function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  if (isIP(host) !== 0 && !allows('private', host)) throw refused()
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ host, port, lookup: guardedLookup('private', refused), autoSelectFamily: true })
  const stop = () => socket.destroy(new SmtpError('the mail server did not answer in time', true))
  signal.addEventListener('abort', stop, { once: true })
  // Keeps this handler, because the library adds its own handler a moment later.
  socket.on('error', reject)
  socket.once('connect', () => {
    // Checks the reached address. The DNS lookup has already removed refused addresses.
    if (socket.remoteAddress && allows('private', socket.remoteAddress)) return resolve(socket)
    socket.destroy()
    reject(refused())
  })
  return promise
}

function refused(): SmtpError {
  return new SmtpError('Nightshift may not connect to the address of the mail server', false)
}

type NodemailerFault = { code?: string; originalCode?: string; responseCode?: number; response?: string }

/** Converts any error to an SmtpError. Codes of nodemailer: https://nodemailer.com/smtp */
function toSmtpError(error: unknown, isOver: boolean): SmtpError {
  if (error instanceof SmtpError) return error
  const { code, originalCode = '', responseCode, response } = error as NodemailerFault
  const said = typeof response === 'string' ? response : ''
  const isTemporary = typeof responseCode === 'number' && responseCode < 500
  if ((code === 'ETLS' && !isTemporary) || /CERT|SIGNATURE|^ERR_(TLS|SSL)/.test(originalCode))
    return new SmtpError('the mail server offers no TLS that can be trusted', false, responseCode ?? null, said)
  if (typeof responseCode === 'number' && responseCode >= 400)
    return new SmtpError(`the mail server answered ${responseCode}`, responseCode < 500, responseCode, said)
  if (isOver || code === 'ETIMEDOUT' || code === 'EABORT')
    return new SmtpError('the mail server did not answer in time', true)
  if (code === 'EAUTH' || code === 'ENOAUTH')
    return new SmtpError('the mail server refused the sign-in', false, null, said)
  if (code === 'EENVELOPE' || code === 'EMESSAGE')
    return new SmtpError('the mail server refused the mail', false, null, said)
  return new SmtpError('the mail server cannot be reached, or the connection broke off', true)
}
