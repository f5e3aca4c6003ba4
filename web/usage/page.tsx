import { Heading } from '../heading.tsx'

export function UsagePage() {
  return <Heading title="Usage" />
}
