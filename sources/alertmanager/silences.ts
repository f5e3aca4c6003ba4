import { z } from 'zod'
import type { Silence } from '../../domain/silence.ts'
import { type AskSource, cutText, SourceError } from '../kind.ts'

/** The silences of an Alertmanager, read from its API v2. */

const time = z.string().refine((text) => !Number.isNaN(Date.parse(text)), 'is not a time')

export const silence = z.looseObject({
  status: z.looseObject({ state: z.string() }),
  matchers: z.array(
    z.looseObject({ name: z.string(), value: z.string(), isRegex: z.boolean(), isEqual: z.boolean().default(true) }),
  ),
  startsAt: time,
  endsAt: time,
  createdBy: z.string().default(''),
  comment: z.string().default(''),
})
const silenceWithId = silence.extend({ id: z.string().regex(/^[0-9A-Za-z-]{1,64}$/) })

/** Parses a response of Alertmanager. Throws SourceError if it does not fit the schema. */
export function parseAnswer<T>(schema: z.ZodType<T>, answer: unknown): T {
  const parsed = schema.safeParse(answer)
  if (!parsed.success) throw new SourceError('BAD_ANSWER', 'the response does not fit the Alertmanager API')
  return parsed.data
}

/**
 * The most silences that are compared with an alert. If there are more silences, it is unknown
 * whether an alert is silenced.
 */
const maxSilences = 10_000
/** The most bytes of a list of silences, which also has silences that ended in the last days. */
const maxBytes = 16_000_000
const maxNameChars = 200
const maxMatcherBytes = 20_000

/** Lists active and pending silences. Silences that end last come first. */
export async function readSilences(ask: AskSource): Promise<Silence[]> {
  const all = parseAnswer(z.array(silenceWithId), await ask({ path: '/api/v2/silences', maxBytes }))
  const standing = all.filter(({ status }) => status.state !== 'expired')
  if (standing.length > maxSilences)
    throw new SourceError(
      'TOO_LARGE',
      `Alertmanager has ${standing.length} silences, and at most ${maxSilences} are read`,
    )
  const toTime = (text: string) => new Date(text).toISOString()
  return standing
    .map(({ id, status, matchers, startsAt, endsAt, createdBy, comment }) => ({
      id,
      state: status.state === 'pending' ? ('pending' as const) : ('active' as const),
      matchers: boundMatchers(matchers),
      startsAt: toTime(startsAt),
      endsAt: toTime(endsAt),
      createdBy: cutText(createdBy, 100),
      comment: cutText(comment, 300),
    }))
    .toSorted((a, b) => b.endsAt.localeCompare(a.endsAt))
}

/** Returns the matchers of a silence. Null if names or patterns are too long to be compared. */
function boundMatchers(given: z.infer<typeof silence>['matchers']): Silence['matchers'] {
  const matchers = given.map(({ name, value, isRegex, isEqual }) => ({ name, value, isRegex, isEqual }))
  const isShort = Buffer.byteLength(JSON.stringify(matchers)) <= maxMatcherBytes
  return isShort && matchers.every(({ name }) => name.length <= maxNameChars) ? matchers : null
}
