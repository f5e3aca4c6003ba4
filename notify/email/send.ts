import { SmtpError, sendMail } from '../../clients/smtp.ts'
import type { MailServer } from '../../domain/destination.ts'
import { inertText } from '../../domain/inert-text.ts'
import type { Delivery } from '../../domain/notification.ts'
import { version } from '../../domain/version.ts'
import type { MailMessage } from './message.ts'

/**
 * Milliseconds until the next attempt at a mail server that temporarily refuses. Greylisting needs
 * minutes and several attempts.
 */
const patienceMs = 60_000

/**
 * Makes one attempt to send a mail. Never throws. The result contains no password and no mail
 * address of a person.
 */
export async function sendMessage(
  { from, to, host, port, tls, user, ca }: MailServer,
  password: string | null,
  message: MailMessage,
  timeoutMs: number,
): Promise<Delivery> {
  const { isUrgent, ...mail } = message
  const clean = (said: string) => withoutOwn(inertText(said, 500), [password, user, ...to])
  try {
    const { said, rejected } = await sendMail(
      { host, port, tls, user, password, ca },
      { ...mail, from, to, headers: headersOf(isUrgent) },
      timeoutMs,
    )
    const some = rejected.length > 0 ? `; the server refused ${rejected.length} of ${to.length} addresses` : ''
    return { outcome: 'sent', status: 250, responseSnippet: `${clean(said)}${some}` }
  } catch (error) {
    if (!(error instanceof SmtpError)) throw error
    const { message: reason, later, status, said } = error
    const told = { reason, responseSnippet: clean(said) }
    if (later && status !== null) return { outcome: 'wait', status, afterMs: patienceMs, ...told }
    if (later) return { outcome: 'retry', status, afterMs: null, ...told }
    return { outcome: 'drop', status, ...told }
  }
}

/** Headers that suppress vacation replies, and second copies from mailing lists. */
function headersOf(isUrgent: boolean): Record<string, string> {
  return {
    'Auto-Submitted': 'auto-generated',
    'X-Auto-Response-Suppress': 'All',
    'X-Mailer': `Nightshift ${version}`,
    ...(isUrgent && { Importance: 'high' }),
  }
}

/**
 * Removes password, login and recipients from the response of the mail server, because servers
 * often repeat the login and the recipient.
 */
function withoutOwn(said: string, own: readonly (string | null)[]): string {
  return own.reduce<string>((text, word) => (word ? text.replaceAll(word, '…') : text), said)
}
