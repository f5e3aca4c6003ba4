import { userInfo } from 'node:os'

/** Of the agent's user, who in a container may be in no list of users. */
export function homeOf(): string {
  try {
    return userInfo().homedir
  } catch {
    return '/'
  }
}
