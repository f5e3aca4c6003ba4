import { report } from './report.ts'
export async function queue(): Promise<void> {
  report('queue', {})
}
