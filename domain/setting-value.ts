import { z } from 'zod'
import { parseInvestigateFilter } from './admission.ts'
import { faultOfPattern } from './decision-right.ts'
import { parseHandOverTimes, parseNight } from './night.ts'
import { parseOnCall } from './on-call.ts'
import { parsePageHold } from './page-hold.ts'
import { parsePrices } from './price.ts'
import { parseResourceRules } from './resource-rules.ts'
import { maxRetentionDays, minRetentionDays } from './retention.ts'
import { parseStateRules } from './state-words.ts'

/** Units of the numbers in settings, shown beside them. */
export const settingUnits = ['s', '$', 'tokens', 'turns', 'investigations', 'people', 'days', 'questions'] as const
export type SettingUnit = (typeof settingUnits)[number]

/** The schema of a setting's text, and the unit of its number. Every number has a unit. */
export type SettingKind = { schema: z.ZodType; unit: SettingUnit | null }

export const whole = (min: number, max: number, unit: SettingUnit): SettingKind => ({
  schema: z.coerce.number().int().min(min).max(max),
  unit,
})

export const dollars: SettingKind = {
  schema: z
    .string()
    .regex(/^\d{1,7}(\.\d{1,2})?$/, 'must be dollars, such as 25 or 2.50')
    .transform(Number),
  unit: '$',
}

const plain = (schema: z.ZodType): SettingKind => ({ schema, unit: null })

/** Makes a setting whose text is parsed by `parse`, which explains why it refuses a text. */
const parsedBy = <Value>(parse: (text: string) => { ok: true; value: Value } | { ok: false; reason: string }) =>
  plain(
    z.string().transform((text, context) => {
      const parsed = parse(text)
      if (parsed.ok) return parsed.value
      context.addIssue({ code: 'custom', message: parsed.reason })
      return z.NEVER
    }),
  )

export const investigateFilter = parsedBy((text) => {
  const parsed = parseInvestigateFilter(text)
  return parsed.ok ? { ok: true, value: parsed.filter } : parsed
})
export const resourceRules = parsedBy((text) => {
  const parsed = parseResourceRules(text)
  return parsed.ok ? { ok: true, value: parsed.rules } : parsed
})
export const onCallRules = parsedBy((text) => {
  const parsed = parseOnCall(text)
  return parsed.ok ? { ok: true, value: parsed.rules } : parsed
})
export const resourcePatterns = parsedBy((text) => {
  const patterns = text.split(/[\s,;]+/).filter(Boolean)
  const wrong = patterns.find((each) => faultOfPattern(each) !== null)
  return wrong === undefined
    ? { ok: true, value: patterns }
    : { ok: false, reason: `"${wrong}" ${faultOfPattern(wrong)}` }
})
export const stateRules = parsedBy((text) => {
  const parsed = parseStateRules(text)
  return parsed.ok ? { ok: true, value: parsed.rules } : parsed
})
export const prices = parsedBy((text) => {
  const parsed = parsePrices(text)
  return parsed.ok ? { ok: true, value: parsed.rules } : parsed
})

export const pageHold = parsedBy(parsePageHold)
export const nightHours = parsedBy(parseNight)
/** The number of questions per night that may wake somebody, or `off` for no limit. */
export const wakeBudget: SettingKind = {
  schema: z
    .string()
    .regex(/^(?:off|\d{1,2})$/, 'must be a number of questions, 0 to 99, or off')
    .transform((text) => (text === 'off' ? null : Number(text))),
  unit: 'questions',
}
export const handOverTimes = parsedBy(parseHandOverTimes)

export const flag = plain(z.enum(['true', 'false']).transform((text) => text === 'true'))
export const yesNo = plain(z.enum(['yes', 'no']).transform((text) => text === 'yes'))
export const prompt = plain(z.string().min(1).max(20_000))
export const oneOf = (words: readonly [string, ...string[]]) => plain(z.enum(words))

/** The value of a setting that means that no model is set. No declared model can have this name. */
export const noModel = '-'

/** The name of a model in LLM_SERVERS_FILE. `default` is the model of LLM_BASE_URL. */
export const declaredModel = plain(
  z
    .string()
    .regex(
      /^(?:[a-z0-9][a-z0-9_.-]{0,39}|-)$/,
      'must be the name of a model that LLM_SERVERS_FILE declares, or "default", or - to set none',
    )
    .transform((name) => (name === noModel ? null : name)),
)

export const names = plain(
  z.string().transform((text) =>
    text
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean),
  ),
)

/** A number of days, or `keep` if nothing is removed. */
export const daysOrKeep: SettingKind = {
  schema: z
    .string()
    .regex(/^(keep|\d{2,4})$/, 'must be keep, or a number of days')
    .transform((text) => (text === 'keep' ? null : Number(text)))
    .refine(
      (days) => days === null || (days >= minRetentionDays && days <= maxRetentionDays),
      `must be keep, or ${minRetentionDays} to ${maxRetentionDays} days`,
    ),
  unit: 'days',
}

export const httpUrl = plain(z.url({ protocol: /^https?$/ }))

/** A secret of Standard Webhooks: `whsec_` and at least 24 bytes in base64. */
export const webhookSecret = plain(
  z.string().regex(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/, 'must be whsec_ and at least 24 bytes in base64'),
)

/**
 * A secret shared with a sender of webhooks. Visible ASCII only, because it is sent in a header or
 * typed into a form.
 */
export const senderSecret = plain(
  z.string().regex(/^[\x21-\x7e]{16,200}$/, 'must be 16 to 200 visible ASCII characters'),
)
