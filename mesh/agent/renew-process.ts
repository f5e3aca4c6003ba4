import { NotEnrolled, type Places, renew } from './enrolment.ts'

/**
 * `renew-process.ts '<Places as JSON>'`: fetches the manifest. Ends with 0 and its id, or with 1
 * (ask later) or 2 (refused), and why.
 */
try {
  console.log(await renew(JSON.parse(process.argv[2] ?? '{}') as Places))
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = error instanceof NotEnrolled && error.why === 'refused' ? 2 : 1
}
