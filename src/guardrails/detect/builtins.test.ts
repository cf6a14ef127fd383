import { expect, test } from 'vitest';
import { BuiltinScanner, scannedSlugs } from './builtins.ts';

const scanner = new BuiltinScanner(scannedSlugs, ['US']);

function scan(text: string): string[] {
  const list: string[] = [];
  scanner.scan(text, (slug, start, end) => list.push(`${slug} ${text.slice(start, end)}`));
  return list;
}

test.each([
  ['mail john.doe+tag@sub.example.co.uk. ok', 'john.doe+tag@sub.example.co.uk'],
  ['邮箱是foo@example.com谢谢', 'foo@example.com'],
  ['用户@例子.广告', '用户@例子.广告'],
  ["write to o'brien@x.ie", "o'brien@x.ie"],
  ["'foo@bar.com'", 'foo@bar.com'],
  ['"john.doe"@example.com', 'john.doe"@example.com'],
  ['foo\u200b@exa\u00admple.com', 'foo\u200b@exa\u00admple.com'],
  ['ｆｏｏ＠ｅｘａｍｐｌｅ．ｃｏｍ', 'ｆｏｏ＠ｅｘａｍｐｌｅ．ｃｏｍ'],
  ['müller@bücher.de', 'müller@bücher.de'],
  ['john@example.com:secret', 'john@example.com'],
  ['postgres://u:p@db.example.com/x', 'p@db.example.com'],
])('%s contains an email address', (text, address) => {
  expect(scan(text)).toEqual([`email ${address}`]);
});

test.each([
  ['555-123-4567'],
  ['(555) 123-4567'],
  ['555.123.4567'],
  ['5551234567'],
  ['2025550123'],
  ['+1 202 555 0123'],
  ['+15551234567'],
  ['1-800-555-1212'],
  ['+44 20 7946 0958'],
  ['+44 (0)20 7946 0958'],
  ['020 7946 0958'],
  ['01 23 45 67 89'],
  ['030/901820'],
  ['(11) 98765-4321'],
  ['0049 30 901820'],
  ['+81 3-1234-5678'],
  ['０３−１２３４−５６７８'],
  ['03ー1234ー5678'],
  ['+1 (202)\u00a0555\u20110123'],
  ['(202)555-0123'],
])('%s is a telephone number', (number) => {
  expect(scan(`Yes, ${number}, please`)).toEqual([`phone ${number}`]);
});

test('digits after a label of telephone numbers are a telephone number', () => {
  expect(scan('Tel.: 30 901820')).toEqual(['phone 30 901820']);
  expect(scan('móvil 612 345 678')).toEqual(['phone 612 345 678']);
  expect(scan('mobile: 98765 43210')).toEqual(['phone 98765 43210']);
  expect(scan('only 612 345 678')).toEqual([]);
});

test('national numbers of the configured regions are found', () => {
  const spanish = new BuiltinScanner(['phone'], ['ES']);
  const list: number[] = [];
  spanish.scan('only 612 345 678', (_, start, end) => list.push(start, end));
  expect(list).toEqual([5, 16]);
});

test('an extension after a telephone number does not hide it', () => {
  expect(scan('202-555-0123x12')).toEqual(['phone 202-555-0123']);
});

test.each([
  ['4111 1111 1111 1111'],
  ['4111111111111111'],
  ['4111-1111-1111-1111'],
  ['378282246310005'],
  ['3782 822463 10005'],
  ['6011111111111117'],
  ['3530111333300000'],
  ['30569309025904'],
  ['2223003122003222'],
  ['6200000000000005'],
  ['4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1'],
  ['4111\u20091111\u20111111\u200b1111'],
  ['４１１１　１１１１　１１１１　１１１１'],
  ['𝟒𝟏𝟏𝟏 1111 1111 1111'],
])('%s is a payment card number', (number) => {
  expect(scan(`pay ${number}.`)).toEqual([`credit-card ${number}`]);
});

test('a payment card is found among other numbers, in other scripts and after an escape', () => {
  expect(scan('no 12 4111 1111 1111 1111 123')).toEqual(['credit-card 4111 1111 1111 1111']);
  expect(scan('卡号4111111111111111请')).toEqual(['credit-card 4111111111111111']);
  expect(scan('{"n":"\\n4111111111111111"}')).toEqual(['credit-card 4111111111111111']);
  expect(scan('AB12 4111 1111 1111 1111')).toEqual(['credit-card 4111 1111 1111 1111']);
});

test.each([
  ['ssn 123-45-6789', '123-45-6789'],
  ['it is 123 45 6789', '123 45 6789'],
  ['SSN: 123456789', '123456789'],
  ['１２３−４５−６７８９', '１２３−４５−６７８９'],
  ['1\u200b23-45-6789', '1\u200b23-45-6789'],
])('%s contains a Social Security number', (text, number) => {
  expect(scan(text)).toEqual([`ssn ${number}`]);
});

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['http://10.0.0.1:8080/', '10.0.0.1'],
  ['host:10.0.0.1:8080', '10.0.0.1'],
  ['10.0.0.0/8', '10.0.0.0'],
  ['::1', '::1'],
  ['ip:2001:db8::1', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
  ['2001:db8::8a2e:370:7334', '2001:db8::8a2e:370:7334'],
  ['2001:0db8:85a3:0000:0000:8a2e:0370:7334', '2001:0db8:85a3:0000:0000:8a2e:0370:7334'],
  ['::ffff:192.168.0.1', '::ffff:192.168.0.1'],
  ['[2001:db8::1]:443', '2001:db8::1'],
  ['see 2001:db8::1: it', '2001:db8::1'],
])('%s contains an IP address', (text, address) => {
  expect(scan(text)).toEqual([`ip-address ${address}`]);
});

test.each([
  ...['a@b', '@types/node', 'git@github.com:org/repo.git', 'ssh://git@github.com/x', 'lodash@4.17.21', 'icon@2x.png'],
  ...['Foo@1a2b3c.toString()', '@app.route("/x")', 'user@localhost'],
  ...[
    '2024-05-17 12:34:56',
    '1718035200',
    '1718035200123',
    '17.05.2024',
    '05/17/2024 10:20',
    '+2024-05-17',
    '1234567890',
  ],
  ...['order 4155551234', 'order #4155551234', '$2025550123', '612 345 678', '123e4567-e89b-12d3-a456-426614174000'],
  ...['000-12-3456', '666-12-3456', '987-65-4321', '123-00-4567', '123-45-0000', '12-123-45-6789', '123456789'],
  ...[
    '4111111111111112',
    '9111111111111110',
    '5700111111111115',
    'DE89 3704 0044 0532 0130 00',
    'GB29 NWBK 6016 1331 9268 19',
    'DE95 4111 1111 1111 1111 00',
  ],
  ...['a4111111111111111', '0.4111111111111111', '41111111111111114111111111111111'],
  ...['1.2.3.4.5', '256.1.1.1', 'version 1.2.3.4', 'v1.2.3.4', '§ 1.2.3.4', 'Chrome/120.0.0.0 Safari', '1.2.3'],
  ...[
    'std::vector',
    '12:34:56',
    'aa:bb:cc:dd:ee:ff',
    'a::b',
    'Foo::Bar',
    '::',
    '00:11:22:33:44:55:66:77',
    'x[::2]',
    'y[1::3]',
  ],
])('%s contains no match', (text) => {
  expect(scan(text)).toEqual([]);
});

test('offsets refer to the text as written, also after folded characters', () => {
  const text = '\u200b\u200bfull 😀 ｗｉｄｅ: 4\ufe0f\u20e3 4111\u200b-1111-1111-1111\u200b!';
  expect(scan(text)).toEqual(['credit-card 4111\u200b-1111-1111-1111']);
});
