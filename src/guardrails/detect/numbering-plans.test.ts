import {
  getCountries,
  getCountryCallingCode,
  getExampleNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max';
import examples from 'libphonenumber-js/mobile/examples';
import { expect, test } from 'vitest';
import { chance } from '../../../test/filters/corpus.ts';
import { readNumberingPlans } from './numbering-plans.ts';

const plans = readNumberingPlans();

test('a number with its calling code is valid if the library accepts it, in every country', () => {
  const { below, digits } = chance(11);
  let valid = 0;
  for (const country of getCountries()) {
    const example = getExampleNumber(country, examples)?.nationalNumber ?? '123456789';
    const code = getCountryCallingCode(country);
    for (let round = 0; round < 8; round += 1) {
      const from = 1 + below(example.length);
      const national = example.slice(0, from) + digits(example.length - from) + (round === 7 ? '1' : '');
      const parsed = parsePhoneNumberFromString(`+${code}${national}`);
      const isValid = parsed?.isValid() === true && parsed.nationalNumber === national;
      valid += isValid ? 1 : 0;
      expect(plans.international(code + national) === 'valid', `+${code} ${national}`).toBe(isValid);
    }
  }
  expect(valid).toBeGreaterThan(800);
});

test('a national number is valid with and without its trunk prefix', () => {
  expect(plans.isNational('02079460958', 'GB')).toBe(true);
  expect(plans.isNational('0123456789', 'FR')).toBe(true);
  expect(plans.isNational('512345678', 'PL')).toBe(true);
  expect(plans.isNational('1718035200', 'US')).toBe(false);
  expect(plans.hasRegion('XX')).toBe(false);
});
