import { z } from '@hono/zod-openapi'

const leapYear = '(?:[12]\\d(?:0[48]|[2468][048]|[13579][26])|(?:12|16|20|24|28)00)'

const day = `(?:[12]\\d{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)|${leapYear}-02-29)`

const time = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d\\.\\d{6}'

/** A date that exists, such as `2026-11-21`. */
export const calendarDay = z.string().regex(new RegExp(`^${day}$`), 'is not a day such as 2026-11-21')

/** The pattern of a stored time on a date that exists. Cursors begin with such a time. */
export const storedMoment = `${day}T${time}Z`

/**
 * A time in RFC 3339 with any offset, converted to UTC, because PostgreSQL accepts no offset above
 * 15:59.
 */
export const moment = z.iso.datetime({ offset: true }).overwrite((text) => {
  const at = new Date(text)
  return text.endsWith('Z') || Number.isNaN(at.getTime()) ? text : at.toISOString()
})
