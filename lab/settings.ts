import { z } from 'zod'

const port = z.coerce.number().int().min(0).max(65_535)
const token = z.string().min(16)

/** The lab's environment. It is a separate program, so it reads its own. */
const environment = z
  .object({
    LAB_PORT: port.default(0),
    LAB_DIR: z.string().min(1),
    LAB_PLATFORM_TOKEN: token,
    LAB_CONTROL_TOKEN: token,
    ALERT_URL: z.url(),
    ALERT_TOKEN: z.string().min(1),
    LAB_WEB_SHARDS: z.coerce.number().int().min(0).max(24).default(2),
    LAB_PROBE_INTERVAL_MS: z.coerce.number().int().min(50).default(1000),
    LAB_LAG_SECONDS: z.coerce.number().positive().default(3),
    LAB_PACE_SECONDS: z.coerce.number().positive().default(20),
  })
  .refine((each) => each.LAB_PLATFORM_TOKEN !== each.LAB_CONTROL_TOKEN, {
    path: ['LAB_CONTROL_TOKEN'],
    error: 'must differ from LAB_PLATFORM_TOKEN: who may use the platform may not break it or ask the oracle',
  })
export type LabSettings = z.infer<typeof environment>

/** Throws one error that names everything that is wrong. */
export function labSettings(env: Record<string, string | undefined>): LabSettings {
  const parsed = environment.safeParse(env)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(({ path, message }) => `  ${path.join('.')}: ${message}`)
  throw new Error(`the lab cannot start:\n${problems.join('\n')}`)
}
