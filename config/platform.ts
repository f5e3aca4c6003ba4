import { z } from 'zod'
import type { ProxmoxOptions } from '../clients/proxmox/client.ts'
import { engineNames } from '../placement/bound/engine.ts'
import { certificatesIn, type Given, isReadable, url } from './agent.ts'

/** Whatever runs the hosts, and how plans are made for them. */
export const platform = z.object({
  PLACEMENT_ENGINE: z.enum(engineNames).default('glpk'),
  PLACEMENT_CPU_OVERCOMMIT_PERCENT: z.coerce.number().int().min(100).max(3_200).default(100),
  PLACEMENT_RAM_RESERVE_PERCENT: z.coerce.number().int().min(0).max(90).default(0),
  JOBS_FILE: z.string().min(1).optional(),
  PLATFORM_URL: url.optional(),
  PLATFORM_TOKEN: z.string().default(''),
  // Nodes of one cluster: `https://pve1:8006,https://pve2:8006`.
  PROXMOX_URL: z
    .string()
    .transform((text) => text.split(',').map((part) => part.trim()))
    .pipe(z.array(url))
    .optional(),
  PROXMOX_TOKEN: z
    .string()
    .regex(
      /^[^\s:/=]+@[\w.-]+![\w.-]+=[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/,
      'is not USER@REALM!TOKENID=UUID',
    )
    .optional(),
  PROXMOX_CA_FILE: z.string().optional(),
  PROXMOX_RACKS: z.string().transform(rackMap).optional(),
})

/** `r1=pve1,pve2;r2=pve3` as rack by node. */
function rackMap(text: string, context: z.core.$RefinementCtx): Record<string, string> {
  const racks: Record<string, string> = Object.create(null)
  for (const part of text.split(';').filter((part) => part.trim() !== '')) {
    const [rack = '', nodes = '', more] = part.split('=').map((text) => text.trim())
    const names = nodes.split(',').map((node) => node.trim())
    if (more !== undefined || ![rack, ...names].every((name) => /^[A-Za-z0-9][\w.-]*$/.test(name))) {
      context.addIssue(`has "${part.trim()}", which is not <rack>=<node>,<node>`)
      continue
    }
    for (const node of names) {
      if (racks[node]) context.addIssue(`has ${node} in two racks`)
      racks[node] = rack
    }
  }
  return racks
}

/** A cluster takes an address and a token, and there is one platform. */
export function platformProblems(given: Given): string[] {
  const { PROXMOX_URL, PROXMOX_TOKEN, PROXMOX_CA_FILE, PROXMOX_RACKS, PLATFORM_URL } = given
  if (!PROXMOX_URL) {
    return PROXMOX_TOKEN || PROXMOX_CA_FILE || PROXMOX_RACKS
      ? ['PROXMOX_URL is required when another PROXMOX_ setting is set']
      : []
  }
  const problems: string[] = []
  if (PLATFORM_URL) problems.push('PROXMOX_URL and PLATFORM_URL are both set: there is one platform')
  if (!PROXMOX_TOKEN) problems.push('PROXMOX_TOKEN is required when PROXMOX_URL is set')
  if (PROXMOX_URL.split(',').some((one) => isReadable(one.trim()))) {
    problems.push('PROXMOX_URL must be https, unless it is on this machine')
  }
  if (PROXMOX_CA_FILE && !certificatesIn(PROXMOX_CA_FILE)) {
    problems.push(`PROXMOX_CA_FILE names ${PROXMOX_CA_FILE}, which cannot be read or holds no PEM certificate`)
  }
  return problems
}

/** The cluster that is the platform; null where none is set. */
export function proxmoxSettings(config: z.infer<typeof platform>): Omit<ProxmoxOptions, 'journal'> | null {
  const { PROXMOX_URL, PROXMOX_TOKEN, PROXMOX_CA_FILE, PROXMOX_RACKS } = config
  if (!PROXMOX_URL || !PROXMOX_TOKEN) return null
  const ca = PROXMOX_CA_FILE ? certificatesIn(PROXMOX_CA_FILE) : null
  return { urls: PROXMOX_URL, token: PROXMOX_TOKEN, racks: PROXMOX_RACKS ?? {}, ...(ca !== null && { ca }) }
}
