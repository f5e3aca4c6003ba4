import { evaluate } from './capabilities/eval.ts'
import { exec } from './capabilities/exec.ts'
import type { DeviceCapability } from './capability.ts'

/** Everything that this agent can do. What the device lacks for it is found out at the start. */
export const allCapabilities: readonly DeviceCapability[] = [exec, evaluate] as unknown as readonly DeviceCapability[]
