import { redactJson } from './redact.ts'
import { stripText } from './strip.ts'

/**
 * What everything that is stored, shown or sent goes through, in one walk: what cannot be seen is stripped, then secrets
 * are redacted (in this order, or a zero-width character would hide one). Idempotent. Like JSON.stringify it leaves out
 * what JSON cannot say; digests, ids and numbers stay.
 */
export function cleanse<T>(value: T): T {
  return redactJson(value, stripText)
}
