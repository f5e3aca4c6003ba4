/** Hours of a day in one time zone; from midnight on where `from` is later than `to`. */
export type Hours = { from: string; to: string; zone: string }

/** Is it a zone by its name, as Europe/Oslo? An offset is no zone: it is wrong for half of the year. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

/** Is this time within the hours, by the clock of their zone? */
export function isWithin({ from, to, zone }: Hours, at: string): boolean {
  const now = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(new Date(at))
  return from < to ? now >= from && now < to : now >= from || now < to
}
