const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

type Read = { atMs: number | null; rest: string }

/** `2026-11-23T16:43:06.123+0000`, `2026-11-23 16:43:06,123`, `2026/11/23 16:43:06`, each perhaps in brackets. */
const iso = /^\[?(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|UTC|[+-]\d\d:?\d\d)?\]?:?\s*/
/** `Nov 23 16:43:06`, of syslog, which tells no year. */
const syslog = /^([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d)\s+/
/** `[23/Nov/2026:16:43:06 +0000]`, of access logs, which have it behind the address. */
const access = /\[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})\]\s*/

/**
 * When a line was written, and the line without that. A time that names no zone is in the zone of this process, and one without a year is the
 * last of its kind. `null`: the line has none.
 */
export function readLogTime(line: string, nowMs = Date.now()): Read {
  const [isIso, isSyslog, isAccess] = [iso.exec(line), syslog.exec(line), access.exec(line)]
  if (isIso) {
    const [all, year, month, day, time, fraction = '0', zone = ''] = isIso
    const text = `${year}-${month}-${day}T${time}.${fraction.padEnd(3, '0').slice(0, 3)}${toZone(zone)}`
    return toRead(Date.parse(text), line.slice(all.length))
  }
  if (isSyslog) {
    const [all, name = '', day = '', time = ''] = isSyslog
    const of = (year: number) => Date.parse(`${year}-${toMonth(name)}-${day.trim().padStart(2, '0')}T${time}`)
    const year = new Date(nowMs).getFullYear()
    // A day of leeway: clocks differ.
    const atMs = of(year) > nowMs + 86_400_000 ? of(year - 1) : of(year)
    return toRead(atMs, line.slice(all.length))
  }
  if (isAccess) {
    const [all, day, name = '', year, time, zone = ''] = isAccess
    return toRead(Date.parse(`${year}-${toMonth(name)}-${day}T${time}${toZone(zone)}`), line.replace(all, ''))
  }
  return { atMs: null, rest: line }
}

const toMonth = (name: string) => String(months.indexOf(name) + 1).padStart(2, '0')
const toZone = (zone: string) => (zone === 'UTC' ? 'Z' : zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2'))
const toRead = (atMs: number, rest: string): Read => (Number.isNaN(atMs) ? { atMs: null, rest } : { atMs, rest })
