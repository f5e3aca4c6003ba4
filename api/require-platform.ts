import type { PlatformClient } from '../clients/platform.ts'
import type { ApiDeps } from './deps.ts'
import { Problem } from './problem.ts'

/** The platform, or an answer that no retry mends: this API was started without one. */
export function requirePlatform(deps: Pick<ApiDeps, 'platform'>): PlatformClient {
  if (deps.platform) return deps.platform
  throw new Problem(
    422,
    'NO_PLATFORM',
    'No platform is configured (PLATFORM_URL or PROXMOX_URL): nothing can be written to it.',
  )
}
