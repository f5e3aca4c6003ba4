import { z } from 'zod'
import { incidentType } from './incident.ts'
import { idPattern } from './kinds.ts'
import { inventoryKind } from './registry.ts'
import { siteVerdicts } from './site-decision.ts'

/**
 * The site's policy: a file `policy.yaml` of ordered rules for what may be done where and when.
 * `docs/reference/policy.md` says what they mean; `safety/site` compiles them into one more list of
 * the kernel.
 */

const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'takes one line')

/** One, or a list. */
const someOf = <T extends z.ZodType>(one: T) => z.union([one, z.array(one).min(1).max(500)])

const wordName = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'takes small letters, digits and single dashes between them')
  .max(64)

const wallTime = z
  .string()
  .regex(/^20[2-9]\d-\d\d-\d\dT\d\d:\d\d$/, 'takes a time of 2020 to 2099 without an offset, such as 2026-12-20T02:00')

const siteWindow = z
  .strictObject({
    timezone: line(64).describe('As the IANA database spells it, such as Europe/Oslo'),
    start: wallTime.describe('By the clock on the wall there'),
    end: wallTime.describe('The first minute that is no longer of it'),
    rrule: line(200)
      .optional()
      .describe('RFC 5545, such as FREQ=WEEKLY;BYDAY=SU: on which days it begins again, at the time of start'),
  })
  .describe('Holds from start until just before end, by the clock on the wall')
export type SiteWindow = z.infer<typeof siteWindow>

const label = z.union([line(500), z.number(), z.boolean()])

const siteResource = z.strictObject({
  kind: someOf(inventoryKind).optional(),
  id: someOf(z.string().regex(idPattern, 'is no id of a resource')).optional().describe('With exactly one kind'),
  labels: z
    .record(line(100), someOf(label))
    .refine((labels) => Object.keys(labels).length > 0, 'names no label')
    .optional()
    .describe('Each has this value, or one of these'),
})

const siteVerdict = z.enum(siteVerdicts)

const siteRule = z.strictObject({
  name: line(120).describe('How cards, pages and rows call it'),
  tool: someOf(z.string().regex(/^[a-z0-9_]{1,64}$/, 'is no name of a tool')).optional(),
  resource: siteResource.optional(),
  type: someOf(incidentType).optional(),
  during: someOf(wordName).optional(),
  silenced: z
    .literal(true)
    .optional()
    .describe('Only while a silence of an Alertmanager matches an alert of the incident; with never or ask'),
  action: siteVerdict,
  group: wordName.optional().describe('With ask: who may decide'),
  people: z.int().min(1).max(2).optional().describe('With ask: how many must agree'),
})
export type SiteRule = z.infer<typeof siteRule>

const maxSiteRules = 1_000
const maxNamed = 100

const named = <T extends z.ZodType>(value: T) =>
  z.record(wordName, value).refine((all) => Object.keys(all).length <= maxNamed, `has more than ${maxNamed} entries`)

export const sitePolicy = z.strictObject({
  version: z.literal(1),
  groups: named(z.array(line(100)).min(1).max(200))
    .default({})
    .describe('Names of people'),
  windows: named(siteWindow).default({}),
  rules: z.array(siteRule).max(maxSiteRules).describe('The first that fits decides'),
})
export type SitePolicy = z.infer<typeof sitePolicy>

/** What a field that takes one or a list holds; null where it is absent. */
export const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | null =>
  value === undefined ? null : Array.isArray(value) ? value : [value as T]
