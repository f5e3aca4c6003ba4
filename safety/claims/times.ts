/** A time of day, with its date where it has one, as logs and JSON write it. */
const time = /(?<![\d:.])(?:(\d{4}-\d{2}-\d{2})[t ])?([0-2]?\d):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?z?(?![\d:])/gi

export type Moment = {
  text: string
  date: string | null
  hour: number
  minute: number
  second: string | null
  at: number
}

export function momentsIn(text: string): Moment[] {
  return [...text.matchAll(time)].map((match) => ({
    text: match[0],
    date: match[1] ?? null,
    second: match[4] ?? null,
    at: match.index,
    hour: Number(match[2]),
    minute: Number(match[3]),
  }))
}

/** Does the other text hold this moment, told as exactly or more so? 00:45:41 is 00:45:41.463. */
export function holdsMoment(said: Moment, other: string): boolean {
  return momentsIn(other).some(
    (each) =>
      (said.date === null || each.date === null || said.date === each.date) &&
      each.hour === said.hour &&
      each.minute === said.minute &&
      (said.second === null || (each.second ?? '').startsWith(said.second)),
  )
}

export function secondsBetween(first: string, second: string): number | null {
  const [a] = momentsIn(first)
  const [b] = momentsIn(second)
  if (!a || !b || (a.date === null) !== (b.date === null)) return null
  return Math.abs(ofAll(b) - ofAll(a))
}

function ofAll({ date, hour, minute, second }: Moment): number {
  return (date ? Date.parse(date) / 1000 : 0) + hour * 3600 + minute * 60 + Number(second ?? 0)
}
