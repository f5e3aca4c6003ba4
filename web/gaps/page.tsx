import { Heading } from '../heading.tsx'

export function GapsPage() {
  return <Heading title="Capability gaps" />
}
