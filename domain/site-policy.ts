import { z } from 'zod'
import { incidentType } from './incident.ts'
import { idPattern } from './kinds.ts'
import { inventoryKind } from './registry.ts'
import { siteVerdicts } from './site-decision.ts'

/**
 * The configured policy: a file `policy.yaml` with ordered rules about which actions are allowed,
 * where and when. `docs/reference/policy.md` explains the rules. `safety/site` compiles them for
 * the kernel.
 */

const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be one line')

/** Accepts one value of this schema, or a list of values. */
const someOf = <T extends z.ZodType>(one: T) => z.union([one, z.array(one).min(1).max(500)])

const wordName = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be small letters, digits and single dashes between them')
  .max(64)

const wallTime = z
  .string()
  .regex(
    /^20[2-9]\d-\d\d-\d\dT\d\d:\d\d$/,
    'must be a time from 2020 to 2099 without an offset, such as 2026-12-20T02:00',
  )

const siteWindow = z
  .strictObject({
    timezone: line(64).describe('The name in the IANA database, such as Europe/Oslo'),
    start: wallTime.describe('In the local time of the zone'),
    end: wallTime.describe('The first minute after the window'),
    rrule: line(200)
      .optional()
      .describe(
        'RFC 5545, such as FREQ=WEEKLY;BYDAY=SU: the days on which the window begins again, at the time of start',
      ),
  })
  .describe('The window applies from start until just before end, in local time')
export type SiteWindow = z.infer<typeof siteWindow>

const label = z.union([line(500), z.number(), z.boolean()])

const siteResource = z.strictObject({
  kind: someOf(inventoryKind).optional(),
  id: someOf(z.string().regex(idPattern, 'is not the id of a resource'))
    .optional()
    .describe('Allowed only with exactly one kind'),
  labels: z
    .record(line(100), someOf(label))
    .refine((labels) => Object.keys(labels).length > 0, 'names no label')
    .optional()
    .describe('The label must have this value, or one of these values'),
})

const siteVerdict = z.enum(siteVerdicts)

const siteRule = z.strictObject({
  name: line(120).describe('The name of the rule on cards, pages and rows'),
  tool: someOf(z.string().regex(/^[a-z0-9_]{1,64}$/, 'is not the name of a tool')).optional(),
  resource: siteResource.optional(),
  type: someOf(incidentType).optional(),
  during: someOf(wordName).optional(),
  silenced: z
    .literal(true)
    .optional()
    .describe(
      'The rule only applies while a silence of an Alertmanager matches an alert of the incident. Allowed only with never or ask',
    ),
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
  rules: z.array(siteRule).max(maxSiteRules).describe('The first matching rule decides'),
})
export type SitePolicy = z.infer<typeof sitePolicy>

/** Returns a field with one value or a list as a list; null if the field is absent. */
export const listOf = <T>(value: T | readonly T[] | undefined): readonly T[] | null =>
  value === undefined ? null : Array.isArray(value) ? value : [value as T]
