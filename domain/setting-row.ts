import { z } from 'zod'
import { settingSections } from './setting.ts'
import { settingUnits } from './setting-value.ts'

/**
 * Settings as the API shows them: stored, available, effective and former values. Secrets are
 * masked.
 */

export const storedSetting = z.object({
  key: z.string(),
  value: z.string().nullable(),
  version: z.number().int(),
  updatedAt: z.string(),
  updatedBy: z.string(),
  reason: z.string().nullable(),
  description: z.string().nullable(),
  secret: z.boolean(),
  /** Whether an environment variable sets the setting, so that a stored value has no effect. */
  locked: z.boolean(),
  /** Why the stored text has no effect; null if the text has an effect. */
  problem: z.string().nullable(),
})
export type StoredSetting = z.infer<typeof storedSetting>

export const settingDescription = z.object({
  key: z.string(),
  section: z.enum(settingSections),
  /** A short name of the setting. */
  label: z.string(),
  /** The unit of the setting's number; null for a text. */
  unit: z.enum(settingUnits).nullable(),
  description: z.string(),
  default: z.string().nullable(),
  environment: z.string().nullable(),
  secret: z.boolean(),
})
export type SettingDescription = z.infer<typeof settingDescription>

/**
 * An environment variable of a process. `value`: null for a secret, and if the variable has no
 * value.
 */
export const environmentVariable = z.object({
  name: z.string(),
  group: z.string(),
  description: z.string(),
  secret: z.boolean(),
  state: z.enum(['set', 'default', 'not_set']),
  value: z.string().nullable(),
})
export type EnvironmentVariable = z.infer<typeof environmentVariable>

/**
 * A variable of the API process. `worker`: the value in the worker if it differs; for a secret,
 * only whether the worker has a value. Null if the values are equal, or if no worker reported.
 */
export const shownVariable = environmentVariable.extend({
  worker: environmentVariable.pick({ state: true, value: true }).nullable(),
})
export type ShownVariable = z.infer<typeof shownVariable>

/** How the webhook's receiver responded to a test. `said`: the beginning of the response. */
export const webhookTest = z.object({
  outcome: z.enum(['sent', 'wait', 'retry', 'drop']),
  status: z.number().int().nullable(),
  detail: z.string(),
  said: z.string(),
})
export type WebhookTest = z.infer<typeof webhookTest>

export const settingInForce = z.object({
  name: z.string(),
  key: z.string(),
  value: z.unknown(),
  source: z.enum(['type', 'global', 'environment', 'default']),
  problem: z.string().nullable(),
})
export type SettingInForce = z.infer<typeof settingInForce>

export const settingRevision = z.object({
  version: z.number().int(),
  oldValue: z.string().nullable(),
  newValue: z.string().nullable(),
  actor: z.string().nullable(),
  reason: z.string().nullable(),
  at: z.string(),
})
export type SettingRevision = z.infer<typeof settingRevision>
