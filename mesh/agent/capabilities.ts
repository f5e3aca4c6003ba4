import { dockerOn } from './capabilities/docker.ts'
import { evaluate } from './capabilities/eval.ts'
import { exec } from './capabilities/exec.ts'
import { fsList } from './capabilities/fs-list.ts'
import { fsRead } from './capabilities/fs-read.ts'
import { fsStat } from './capabilities/fs-stat.ts'
import { fsWrite } from './capabilities/fs-write.ts'
import { gitClone } from './capabilities/git-clone.ts'
import { gitCommit } from './capabilities/git-commit.ts'
import { gitPush } from './capabilities/git-push.ts'
import { pkgWith } from './capabilities/pkg.ts'
import { procKill } from './capabilities/proc-kill.ts'
import { procList } from './capabilities/proc-list.ts'
import type { DeviceCapability } from './capability.ts'

/** Where what an agent uses is not where every machine has it. */
export type Elsewhere = {
  /** Where the container engine listens, as DOCKER_HOST writes it; without it where every engine does. */
  dockerHost?: string
  /** Given to each call of apt (`-o`, `Dir=/elsewhere`): its packages are then not the machine's, and an agent that is not root may install. */
  aptOptions?: readonly string[]
}

/** Everything that an agent can do. What the device lacks for it is found out at the start. */
export const capabilitiesOn = ({ dockerHost, aptOptions = [] }: Elsewhere): readonly DeviceCapability[] => [
  exec,
  evaluate,
  fsRead,
  fsWrite,
  fsList,
  fsStat,
  gitClone,
  gitCommit,
  gitPush,
  procList,
  procKill,
  ...Object.values(pkgWith(aptOptions)),
  ...Object.values(dockerOn(dockerHost)),
]

export const allCapabilities = capabilitiesOn({})
